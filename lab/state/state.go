// Package state knows where a lab keeps what on the host, whether a lab runs, and how everything of one is
// removed.
package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"liqonet.io/liqonet/lab/cgroup"
)

// Roots of all labs: what must be fast to find, and what needs room.
const (
	runRoot  = "/run/liqonet-lab"
	dataRoot = "/var/lib/liqonet-lab"
)

// Paths are the files and folders of one lab.
type Paths struct {
	Name string // of the lab
}

// Run is the folder of small files by which a running lab is found.
func (p Paths) Run() string { return filepath.Join(runRoot, p.Name) }

// Spec is the file with the specification of the lab.
func (p Paths) Spec() string { return filepath.Join(p.Run(), "lab.yaml") }

// Socket is where the supervisor listens.
func (p Paths) Socket() string { return filepath.Join(p.Run(), "supervisor.sock") }

// Lock is the file that the supervisor has locked as long as it lives.
func (p Paths) Lock() string { return filepath.Join(p.Run(), "lock") }

// Kubeconfig is the file with a context for every cluster.
func (p Paths) Kubeconfig() string { return filepath.Join(p.Run(), "kubeconfig") }

// Data is the folder of disks, logs and keys.
func (p Paths) Data() string { return filepath.Join(dataRoot, p.Name) }

// SupervisorLog is what the supervisor prints.
func (p Paths) SupervisorLog() string { return filepath.Join(p.Data(), "supervisor.log") }

// Images is the folder of images that every node has.
func (p Paths) Images() string { return filepath.Join(p.Data(), "images") }

// Node is the disk of a node.
func (p Paths) Node(name string) string { return filepath.Join(p.Data(), "nodes", name) }

// ControlPlane is the disk of a cluster's control plane.
func (p Paths) ControlPlane(cluster string) string {
	return filepath.Join(p.Data(), "control-planes", cluster)
}

// Group names the control group of everything that the lab runs.
func (p Paths) Group() string { return "liqonet-lab." + p.Name }

// Create makes the lab's folders.
func (p Paths) Create() error {
	return exclusively(func() error {
		for _, dir := range []string{p.Run(), p.Data(), p.Images()} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		return nil
	})
}

// Exists reports whether anything of the lab is on the host, running or left behind.
func (p Paths) Exists() (bool, error) {
	for _, dir := range []string{p.Run(), p.Data()} {
		if _, err := os.Stat(dir); err == nil {
			return true, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	groups, err := cgroup.Find(p.Group())
	return len(groups) > 0, err
}

// Names lists the labs that are on the host, running or left behind.
func Names() ([]string, error) {
	var names []string
	for _, root := range []string{runRoot, dataRoot} {
		entries, err := os.ReadDir(root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if e.IsDir() && !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// Remove ends every process of the lab and removes all that it has on the host. It may be run again after it
// was interrupted, and while there is nothing to remove.
func (p Paths) Remove(ctx context.Context) error {
	if err := p.Create(); err != nil { // the lock's folder; from now on no supervisor can start
		return err
	}
	lock, err := p.takeOver(ctx)
	if err != nil {
		return fmt.Errorf("end lab %s: %w", p.Name, err)
	}
	defer lock.Close()
	if err := cgroup.Sweep(ctx, p.Group()); err != nil {
		return fmt.Errorf("end lab %s: %w", p.Name, err)
	}
	for _, dir := range []string{p.Data(), p.Run()} {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove lab %s: %w", p.Name, err)
		}
	}
	return restoreLimits()
}
