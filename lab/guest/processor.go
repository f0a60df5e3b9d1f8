package guest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/build"
)

// processorLock precedes the number of a processor in the name of a file, which a pinned guest holds locked.
const processorLock = "guest-processor-"

// pin limits a guest's processes to one processor that no other guest has, until release is called. If all are taken,
// the processes stay unlimited. A guest's kernel and its programs are processes of which one runs at a time, and they
// take turns at each system call and page fault: between two processors a turn costs twice as much.
func pin(pid int) (release func(), err error) {
	cache, err := build.CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, fmt.Errorf("processors of this process: %w", err)
	}
	for i, left := 0, allowed.Count(); left > 0; i++ {
		if !allowed.IsSet(i) {
			continue
		}
		left--
		f, err := os.OpenFile(filepath.Join(cache, fmt.Sprint(processorLock, i)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		release := func() { _ = f.Close() } // and so is the lock
		var one unix.CPUSet
		one.Set(i)
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case errors.Is(err, unix.EWOULDBLOCK):
			release()
			continue
		case err != nil:
			release()
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if err := unix.SchedSetaffinity(pid, &one); err != nil && !errors.Is(err, unix.ESRCH) { // it may have ended
			release()
			return nil, fmt.Errorf("processor of process %d: %w", pid, err)
		}
		return release, nil
	}
	return func() {}, nil
}
