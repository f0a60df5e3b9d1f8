package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A lab belongs to the process that holds the POSIX lock of its lock file: the supervisor, or a process that
// removes the lab. The kernel drops the lock when the process ends, however it ends, and names the holder to others.
// Such a lock is also dropped when the process closes any descriptor of the file: a process that holds a lab does not
// ask for its holder.

var errHeld = errors.New("held by another process")

// Hold makes this process the lab's holder until it ends or the file is closed.
func (p Paths) Hold() (*os.File, error) {
	f, err := os.OpenFile(p.Lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", p.Lock(), err), f.Close())
	}
	return f, nil
}

func lock(f *os.File) error {
	want := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &want)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return errHeld
	}
	if err != nil {
		return err
	}
	// The lab may have been removed between open and lock.
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if st.Nlink == 0 {
		return fs.ErrNotExist
	}
	return nil
}

// Holder returns the process that holds the lab, 0 if none does.
func (p Paths) Holder() (int, error) {
	f, err := os.OpenFile(p.Lock(), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	want := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &want); err != nil {
		return 0, fmt.Errorf("query lock %s: %w", p.Lock(), err)
	}
	if want.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(want.Pid), nil
}

// takeOver kills the process that holds the lab and becomes its holder.
func (p Paths) takeOver(ctx context.Context) (*os.File, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := p.Hold()
		if !errors.Is(err, errHeld) {
			return f, err
		}
		pid, err := p.Holder()
		if err != nil {
			return nil, err
		}
		if pid > 0 {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return nil, fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}
