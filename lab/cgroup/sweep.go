package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Empty kills every process below the group and removes its child groups. The group itself stays.
func (g Group) Empty(ctx context.Context) error {
	for _, h := range g.Hierarchies {
		if err := empty(ctx, g.dir(h)); err != nil {
			return err
		}
	}
	return nil
}

// Sweep kills every process in groups called name, and below, and removes the groups, wherever in a
// hierarchy they are.
func Sweep(ctx context.Context, name string) error {
	dirs, err := Find(name)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := empty(ctx, dir); err != nil {
			return err
		}
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove control group: %w", err)
		}
	}
	return nil
}

// Find lists the folders of all groups called name.
func Find(name string) ([]string, error) {
	hs, err := Hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, h := range hs {
		err := filepath.WalkDir(h.Mount, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it ended while the walk was under way
			}
			if err != nil {
				return err
			}
			if d.IsDir() && d.Name() == name {
				found = append(found, path)
				return fs.SkipDir
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list control groups of %s: %w", h.Mount, err)
		}
	}
	return found, nil
}

// empty kills until no process is left at or below dir, and removes the groups below.
func empty(ctx context.Context, dir string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		left, err := killBelow(dir, true)
		if err == nil && left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("empty control group %s: %d groups and processes left: %w", dir, left, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// killBelow kills the processes at and below dir and removes the groups that are empty, deepest first. It
// returns how many processes and groups remained; dir itself is kept if top is set.
func killBelow(dir string, top bool) (left int, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 1, err
	}
	for _, e := range entries {
		if e.IsDir() {
			n, err := killBelow(filepath.Join(dir, e.Name()), false)
			if err != nil {
				return left + 1, err
			}
			left += n
		}
	}
	killed, err := killMembers(dir)
	left += killed
	if err != nil {
		return left + 1, err
	}
	if top || left > 0 {
		return left, nil
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 1, nil // EBUSY while the last process is being taken down
	}
	return 0, nil
}

// killMembers kills the processes of dir itself and returns how many it saw.
func killMembers(dir string) (seen int, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	for _, f := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(f)
		if err != nil || pid == 0 { // 0: a process that this PID namespace does not see
			continue
		}
		seen++
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return seen, fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return seen, nil
}
