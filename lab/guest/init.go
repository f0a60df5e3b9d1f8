package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// InitCommand is the first argument of the program that becomes a guest's PID 1; the second is the file for Init.
const InitCommand = "guest-init"

// temporary is the guest's folder for temporary files. /tmp remains the machine's, as it may have programs.
const temporary = "/run/tmp"

// Init is the main function of a guest's PID 1. It returns, with an error, only if the guest could not be shut down.
func Init(file string) error {
	var r result
	var err error
	if r.Code, err = runJob(file); err != nil {
		r.Error = err.Error()
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	answers, err := openConsole(resultConsole)
	if err != nil {
		return err
	}
	if _, err := answers.Write(text); err != nil {
		return err
	}
	if err := drain(answers); err != nil {
		return err
	}
	return os.NewSyscallError("reboot", unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF))
}

func runJob(file string) (code int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var job jobFile
	if err := json.Unmarshal(text, &job); err != nil {
		return 0, fmt.Errorf("read %s: %w", file, err)
	}
	if err := prepare(); err != nil {
		return 0, err
	}
	stdout, err := openConsole(stdoutConsole)
	if err != nil {
		return 0, err
	}
	stderr, err := openConsole(stderrConsole)
	if err != nil {
		return 0, err
	}
	code, err = runProgram(job, stdout, stderr)
	return code, errors.Join(err, drain(stdout), drain(stderr))
}

// prepare mounts file systems and configures the kernel so that tests can run.
func prepare() error {
	for _, m := range []struct{ kind, target, data string }{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"devpts", "/dev/pts", ""},
		{"tmpfs", "/dev/shm", ""},
		{"tmpfs", "/run", "mode=755"},
	} {
		if strings.HasPrefix(m.target, "/dev/") { // the kernel has mounted its own /dev, which lacks them
			if err := os.MkdirAll(m.target, 0o755); err != nil {
				return err
			}
		}
		if err := unix.Mount(m.kind, m.target, m.kind, 0, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.target, err)
		}
	}
	for name, target := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		if err := os.Symlink("/proc/self/fd"+target, filepath.Join("/dev", name)); err != nil {
			return err
		}
	}
	for _, dir := range []string{temporary, "/run/netns"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("link lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set link lo up: %w", err)
	}
	return nil
}

// openConsole opens a console in raw mode.
func openConsole(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	settings, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("settings of %s: %w", name, err)
	}
	settings.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, settings); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", name, err)
	}
	return f, nil
}

// drain waits until the machine has read all output of a console.
func drain(console *os.File) error {
	const wait = 1 // any value but 0, which would send a break
	if err := unix.IoctlSetInt(int(console.Fd()), unix.TCSBRK, wait); err != nil {
		return fmt.Errorf("drain %s: %w", console.Name(), err)
	}
	return nil
}

// runProgram runs the job and, as PID 1 must, collects orphans meanwhile.
func runProgram(job jobFile, stdout, stderr *os.File) (code int, err error) {
	path := searchPath(job.Env)
	if err := os.Setenv("PATH", path); err != nil { // exec.Command reads it
		return 0, err
	}
	cmd := exec.CommandContext(context.Background(), job.Argv[0], job.Argv[1:]...)
	cmd.Dir = filepath.Join("/", job.Dir)
	cmd.Env = append(job.Env, "PATH="+path, "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, fmt.Errorf("wait for children: %w", err)
		case pid != cmd.Process.Pid:
		case status.Signaled():
			return 128 + int(status.Signal()), nil
		default:
			return status.ExitStatus(), nil
		}
	}
}
