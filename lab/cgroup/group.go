package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Group is a control group in every hierarchy. Encoded, it can be joined by another process.
type Group struct {
	Hierarchies []Hierarchy `json:"hierarchies"`
	Name        string      `json:"name"` // path below each hierarchy's Parent
}

// Create makes a group called name, or returns the existing group.
func Create(name string) (Group, error) {
	hs, err := Hierarchies()
	if err != nil {
		return Group{}, err
	}
	g := Group{Hierarchies: hs, Name: name}
	for _, h := range hs {
		if err := h.Delegate(h.Parent); err != nil {
			return Group{}, err
		}
	}
	return g, g.create()
}

// Child makes a group below g. In v2 g can then have no processes of its own.
func (g Group) Child(name string) (Group, error) {
	for _, h := range g.Hierarchies {
		if err := h.Delegate(g.dir(h)); err != nil {
			return Group{}, err
		}
	}
	child := Group{Hierarchies: g.Hierarchies, Name: filepath.Join(g.Name, name)}
	return child, child.create()
}

func (g Group) create() error {
	for _, h := range g.Hierarchies {
		dir := g.dir(h)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make control group: %w", err)
		}
		if h.Controllers == "cpuset" {
			if err := inheritCPUSet(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritCPUSet fills the empty fields of a new v1 cpuset group; no process can join before.
func inheritCPUSet(dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0); err != nil {
			return fmt.Errorf("%s of control group %s: %w", file, dir, err)
		}
	}
	return nil
}

func (g Group) dir(h Hierarchy) string { return filepath.Join(h.Parent, g.Name) }

// Join moves the calling process into the group.
func (g Group) Join() error {
	for _, h := range g.Hierarchies {
		if err := joinDir(g.dir(h)); err != nil {
			return err
		}
	}
	return nil
}

// JoinOf moves the calling process into the groups of another.
func JoinOf(pid int) error {
	hs, err := hierarchiesOf(strconv.Itoa(pid))
	if err != nil {
		return err
	}
	for _, h := range hs {
		if err := joinDir(h.Parent); err != nil {
			return err
		}
	}
	return nil
}

// joinDir moves the calling process into the group of a folder.
func joinDir(dir string) error {
	// "0" is the writer, whatever its number in the host's PID namespace.
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("join control group: %w", err)
	}
	return nil
}

// JoinLeaf moves the calling process into a new child of the group whose folder is dir, and delegates dir's
// controllers to its children. A v2 group with processes in it refuses that.
func (h Hierarchy) JoinLeaf(dir, name string) error {
	leaf := filepath.Join(dir, name)
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	if err := joinDir(leaf); err != nil {
		return err
	}
	return h.Delegate(dir)
}
