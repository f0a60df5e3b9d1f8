package guest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"liqonet.io/liqonet/lab/process"
)

// group is a program and all the processes that it starts. They end together.
type group struct{ cmd *exec.Cmd }

// startGroup starts a program in a process group of its own. The end of its context kills the group.
func startGroup(cmd *exec.Cmd) (group, error) {
	g := group{cmd}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = g.kill
	cmd.WaitDelay = 5 * time.Second // for output that a process outside the group holds open
	if err := process.NewSpawner().Start(cmd, nil); err != nil {
		return group{}, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	return g, nil
}

// wait waits until the program ends, and kills the processes that it left.
func (g group) wait() error {
	return errors.Join(g.cmd.Wait(), g.kill())
}

func (g group) kill() error {
	if err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill the processes of %s: %w", filepath.Base(g.cmd.Path), err)
	}
	return nil
}
