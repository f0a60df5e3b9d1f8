package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	cmd, err := p.command(ctx, argv)
	if err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM) // a terminal sends its interrupts to the program as well
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			// The program may have ended in the meantime; Wait returns that.
			_ = cmd.Process.Signal(s)
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		if exit.ExitCode() < 0 {
			return 0, fmt.Errorf("run %s: %w", argv[0], err)
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}

// command is argv as a child that dies with the calling thread.
func (p Place) command(ctx context.Context, argv []string) (*exec.Cmd, error) {
	if p.Net != "" {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd, nil
	}
	if err := os.Setenv("PATH", Search); err != nil {
		return nil, err
	}
	// syscall.SysProcAttr would kill a child whose parent it cannot see, as from inside a PID namespace: the
	// child asks for the signal by itself.
	return exec.CommandContext(ctx, filepath.Join(ToolsDir, "lab"), append([]string{BecomeCommand, "--"}, argv...)...), nil
}

// Become turns this process into a program that is killed when the thread that started it ends.
func Become(argv []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("ask for signal at parent's death: %w", err)
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := syscall.Exec(program, argv, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", program, err)
	}
	return nil
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
