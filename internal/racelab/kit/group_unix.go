//go:build unix

package kit

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes a command that is not started yet the leader of a new process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a group's leader and everything in its group. A group that is gone is no error.
func killGroup(leader *os.Process) error {
	if err := syscall.Kill(-leader.Pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		return err
	}
	return nil
}
