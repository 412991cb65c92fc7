package bench

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// fdatasync waits until a file's content is on the disk.
func fdatasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// residentBytes is the memory that this process has now; 0 if that is not known.
func residentBytes() int64 {
	const path = "/proc/self/status"
	status, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, after, found := bytes.Cut(status, []byte("\nVmRSS:"))
	var kilobytes int64
	if _, err := fmt.Sscan(string(after), &kilobytes); err != nil || !found {
		return 0
	}
	return kilobytes << 10
}
