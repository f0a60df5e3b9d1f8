// Package guest runs programs on a real Linux kernel that has WireGuard, Geneve and nftables, also if the machine's
// own kernel lacks them: user-mode Linux, an ordinary process, built from Debian's kernel source. It boots in half a
// second.
//
// The guest has the machine's files, read-only, so programs and test binaries run unchanged. /run and TMPDIR are
// the guest's own and are lost when it ends. Its network is not connected. It has one processor.
package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Options of a guest.
type Options struct {
	// Kernel is the program that EnsureKernel returned.
	Kernel string
	// Init is the program that becomes the guest's PID 1, called with InitCommand and a file: it calls Init.
	Init string
	// Argv is the command to run, as root. Its first word is resolved by the PATH of Env.
	Argv []string
	Dir  string   // where it runs; "" is "/"
	Env  []string // "NAME=value"; TMPDIR is the guest's own
	// VirtualTime makes the guest's clock jump to the next timer while its processor is idle, and stop while it works:
	// a wait of two minutes ends at once, and a wait in a busy loop hangs.
	VirtualTime    bool
	Stdout, Stderr io.Writer // nil: discarded
}

// memory is a guest's limit; the machine only provides what the guest uses.
const memory = "2G"

// Guest's consoles beyond the first, each one end of a pipe.
const (
	stdoutConsole = "/dev/tty1"
	stderrConsole = "/dev/tty2"
	resultConsole = "/dev/tty3"
	firstPipe     = 3 // file descriptor of the first, in the kernel's process
)

// jobFile is the file that Init reads.
type jobFile struct {
	Argv []string
	Dir  string
	Env  []string
}

// result is the result of Init.
type result struct {
	Code  int
	Error string // why nothing ran, or ""
}

// Run boots a guest, runs the program there and returns its exit code: 128 plus the signal's number if it died
// of one. The guest is gone when Run returns; ctx ends it early.
func Run(ctx context.Context, o Options) (code int, err error) {
	dir, err := os.MkdirTemp("", "liqonet-guest-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, err := json.Marshal(jobFile{Argv: o.Argv, Dir: o.Dir, Env: o.Env})
	if err != nil {
		return 0, err
	}
	file := filepath.Join(dir, "job.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return 0, err
	}
	var console, answer bytes.Buffer
	cmd := exec.CommandContext(ctx, o.Kernel, o.kernelArguments(dir, file)...)
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + memoryDir()}
	cmd.Stdout, cmd.Stderr = &console, &console
	if err := runAll(cmd, []io.Writer{o.Stdout, o.Stderr, &answer}); err != nil {
		return 0, errors.Join(fmt.Errorf("guest: %w\n%s", err, console.Bytes()), context.Cause(ctx))
	}
	var r result
	if err := json.Unmarshal(answer.Bytes(), &r); err != nil {
		return 0, errors.Join(fmt.Errorf("guest ended without a result; its console:\n%s", console.Bytes()), context.Cause(ctx))
	}
	if r.Error != "" {
		return 0, fmt.Errorf("guest: %s", r.Error)
	}
	return r.Code, nil
}

func (o Options) kernelArguments(dir, file string) []string {
	args := []string{
		"mem=" + memory, "uml_dir=" + dir + "/", "umid=guest",
		"root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
		"con=null", "con0=null,fd:1", "quiet", "panic=-1",
	}
	for i := range 3 {
		args = append(args, fmt.Sprintf("con%d=null,fd:%d", i+1, firstPipe+i))
	}
	if o.VirtualTime {
		args = append(args, "time-travel=inf-cpu")
	}
	return append(args, "init="+o.Init, "--", InitCommand, file)
}

// memoryDir returns the folder for the file with the guest's memory: in the machine's memory if possible.
func memoryDir() string {
	const shared = "/dev/shm"
	if st, err := os.Stat(shared); err == nil && st.IsDir() {
		return shared
	}
	return os.TempDir()
}

// runAll runs cmd with a pipe to each of the writers as its further file descriptors. The exit code of cmd is ignored:
// user-mode Linux exits with 0 also after a panic, and can abort while it switches itself off. Only the answer counts.
func runAll(cmd *exec.Cmd, writers []io.Writer) error {
	copied := make(chan error, len(writers))
	var ours []*os.File
	for _, w := range writers {
		r, pipe, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		ours = append(ours, r)
		cmd.ExtraFiles = append(cmd.ExtraFiles, pipe)
		go func() {
			if w == nil {
				w = io.Discard
			}
			_, err := io.Copy(w, r)
			copied <- err
		}()
	}
	group, err := startGroup(cmd)
	for _, pipe := range cmd.ExtraFiles {
		_ = pipe.Close()
	}
	if err != nil {
		return err
	}
	release, err := pin(cmd.Process.Pid)
	if err != nil { // it is slower
		fmt.Fprintf(os.Stderr, "guest on several processors: %v\n", err)
	} else {
		defer release()
	}
	err = group.wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = nil
	}
	for range ours {
		if copyErr := <-copied; copyErr != nil {
			err = errors.Join(err, fmt.Errorf("pass on output: %w", copyErr))
		}
	}
	return err
}

// searchPath returns the PATH of an environment, followed by the folders of root's programs.
func searchPath(env []string) string {
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok && p != "" {
			return p + ":" + path
		}
	}
	return path
}
