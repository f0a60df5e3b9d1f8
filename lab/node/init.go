package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/process"
)

// Boot is the first step: it enters the node's control group and makes that group the root of all that the
// node sees, then becomes the second step.
func Boot(file string) error {
	runtime.LockOSThread()
	c, err := readConfig(file)
	if err != nil {
		return err
	}
	if err := c.Group.Join(); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make control group namespace: %w", err)
	}
	// Only this thread has left: the exec ends the others.
	return syscall.Exec("/proc/self/exe", []string{"lab", InitCommand, file}, os.Environ())
}

// Init is the second step, PID 1: it makes the mounts, starts the third step and reaps orphans until that
// ends.
func Init(file string) error {
	c, err := readConfig(file)
	if err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("set host name %s: %w", c.Name, err)
	}
	if err := makeMounts(c); err != nil {
		return err
	}
	services := exec.CommandContext(context.Background(), filepath.Join(ToolsDir, "lab"), ServicesCommand, filepath.Join(ConfDir, configFile))
	services.Dir = "/"
	services.Env = environment()
	services.Stdout, services.Stderr = os.Stdout, os.Stderr
	if err := services.Start(); err != nil {
		return err
	}
	return reapUntil(services.Process.Pid)
}

// reapUntil collects ended processes until the one called last is among them.
func reapUntil(last int) error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for children: %w", err)
		case pid == last:
			return fmt.Errorf("services ended with status %d", status.ExitStatus())
		}
	}
}

// Services is the third step: it keeps the node's programs running. It returns only with an error.
func Services(ctx context.Context, file string) error {
	c, err := readConfig(file)
	if err != nil {
		return err
	}
	spawner := process.NewSpawner()
	ended := make(chan error)
	keep := func(v process.Service) { ended <- spawner.Keep(ctx, v, nil) }
	for _, v := range c.Services {
		if !v.Once {
			go keep(v)
			continue
		}
		if err := spawner.Keep(ctx, v, nil); err != nil {
			return err
		}
	}
	return <-ended
}
