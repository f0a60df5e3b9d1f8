package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/cgroup"
)

// Place is where a program can be run.
type Place struct {
	PID int    `json:"pid"`           // process whose control groups, and unless Net is set namespaces, are entered
	Net string `json:"net,omitempty"` // path of a network namespace: it alone is entered
}

// namespaces of a node, in the order in which they are entered: the mounts last, as they hide /proc.
var namespaces = []struct {
	file string
	flag int
}{
	{"cgroup", unix.CLONE_NEWCGROUP},
	{"ipc", unix.CLONE_NEWIPC},
	{"uts", unix.CLONE_NEWUTS},
	{"net", unix.CLONE_NEWNET},
	{"pid", unix.CLONE_NEWPID},
	{"mnt", unix.CLONE_NEWNS},
}

// Run runs a program at a place, with the streams of this process, and returns its exit code. The calling
// thread stays in the place: the caller does nothing else afterwards.
func Run(ctx context.Context, p Place, argv []string) (int, error) {
	runtime.LockOSThread()
	if err := cgroup.JoinOf(p.PID); err != nil {
		return 0, err
	}
	if err := p.enter(); err != nil {
		return 0, err
	}
	if p.Net == "" {
		if err := os.Setenv("PATH", Search); err != nil {
			return 0, err
		}
		if err := os.Chdir("/"); err != nil {
			return 0, err
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			// The program may have ended meanwhile; Wait tells.
			_ = cmd.Process.Signal(s)
		}
	}()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if exit.ExitCode() < 0 {
			return 0, fmt.Errorf("run %s: %w", argv[0], err)
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// enter moves the calling thread, and the processes that it will start, into the place.
func (p Place) enter() error {
	if p.Net != "" {
		return setns(p.Net, unix.CLONE_NEWNET)
	}
	// A thread that shares its root folder with others cannot change mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare file system attributes: %w", err)
	}
	for _, ns := range namespaces {
		if err := setns(fmt.Sprintf("/proc/%d/ns/%s", p.PID, ns.file), ns.flag); err != nil {
			return err
		}
	}
	return nil
}

func setns(path string, flag int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), flag); err != nil {
		return fmt.Errorf("enter %s: %w", path, err)
	}
	return nil
}
