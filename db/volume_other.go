//go:build !linux

package db

// volumeOf is known on Linux only.
func volumeOf(string) (v volume, known bool, err error) { return v, false, nil }

// writable leaves it to the first write: not every system can be asked without trying.
func writable(string) error { return nil }

// usersOf is known on Linux only.
func usersOf(string) (list []user, known bool) { return nil, false }
