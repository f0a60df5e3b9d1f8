package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// instances is the one setting of the whole machine that a lab changes: every kubelet, containerd and shim
// watches files, and the usual limit of 128 for a user is too small for a few nodes.
const (
	instances      = "/proc/sys/fs/inotify/max_user_instances"
	wantInstances  = 8192
	savedInstances = "max_user_instances" // in runRoot: what it was before the first lab
)

// RaiseLimits lifts the limits of the machine that a lab would meet. The old ones come back when the last lab
// is removed.
func RaiseLimits() error {
	return exclusively(func() error {
		old, err := os.ReadFile(instances)
		if err != nil {
			return err
		}
		if n, err := strconv.Atoi(string(bytes.TrimSpace(old))); err != nil || n >= wantInstances {
			return err
		}
		if err := os.WriteFile(filepath.Join(runRoot, savedInstances), old, 0o644); err != nil {
			return err
		}
		return os.WriteFile(instances, []byte(strconv.Itoa(wantInstances)), 0)
	})
}

// restoreLimits puts the limits back if there is no lab any more, and removes the roots of all labs.
func restoreLimits() error {
	return exclusively(func() error {
		names, err := Names()
		if err != nil || len(names) > 0 {
			return err
		}
		saved := filepath.Join(runRoot, savedInstances)
		old, err := os.ReadFile(saved)
		if err == nil {
			err = os.WriteFile(instances, old, 0)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("restore limits: %w", err)
		}
		return errors.Join(os.RemoveAll(dataRoot), os.RemoveAll(runRoot))
	})
}

// exclusively runs f while no other process does.
func exclusively(f func() error) error {
	if err := os.MkdirAll(runRoot, 0o755); err != nil {
		return err
	}
	lock, err := os.Open("/run") // the root itself may be removed by the holder of the lock
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock /run: %w", err)
	}
	return f()
}
