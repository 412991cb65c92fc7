//go:build !unix

package kit

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: there are no process groups here.
func ownGroup(*exec.Cmd) {}

// killGroup kills the process alone.
func killGroup(leader *os.Process) error { return leader.Kill() }
