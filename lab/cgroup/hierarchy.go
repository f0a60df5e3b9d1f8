// Package cgroup keeps the processes of a lab in control groups of their own, on hosts with cgroup v1, hybrid
// or v2. A group's name contains its lab: a sweep finds the remains of a killed lab.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Hierarchy is one mounted cgroup tree.
type Hierarchy struct {
	// Controllers as in /proc/self/cgroup: "cpu,cpuacct", "name=systemd", or "" for cgroup v2.
	Controllers string `json:"controllers"`
	Mount       string `json:"mount"`  // where it is mounted
	Parent      string `json:"parent"` // folder below which groups of a lab are made
}

// Unified reports whether the hierarchy is of cgroup v2.
func (h Hierarchy) Unified() bool { return h.Controllers == "" }

// Hierarchies lists the hierarchies that are mounted. In v1 a lab's groups are made below the caller's own, so
// that its limits hold for the lab too. In v2, where a group that has processes cannot have limited children,
// they are made below the mounted root.
func Hierarchies() ([]Hierarchy, error) {
	hs, err := hierarchiesOf("self")
	for i, h := range hs {
		if h.Unified() {
			hs[i].Parent = h.Mount
		}
	}
	return hs, err
}

// hierarchiesOf lists the hierarchies with the group of a process, a number or "self", as their parent.
func hierarchiesOf(process string) ([]Hierarchy, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	groups, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return nil, err
	}
	hs := parse(string(mounts), string(groups))
	if len(hs) == 0 {
		return nil, errors.New("no cgroup hierarchy is mounted")
	}
	return hs, nil
}

// mounted is a line of mountinfo for a cgroup file system.
type mounted struct {
	root, mount string
	unified     bool
	options     []string
}

// parse combines the two files: each hierarchy's mount, and the process's group in it.
func parse(mountinfo, groups string) []Hierarchy {
	var mounts []mounted
	for line := range strings.Lines(mountinfo) {
		// 36 35 98:0 /root /mount rw,noatime shared:1 - type source super,options
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		f, s := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(s) < 3 || !strings.HasPrefix(s[0], "cgroup") {
			continue
		}
		mounts = append(mounts, mounted{
			root: f[3], mount: f[4], unified: s[0] == "cgroup2", options: strings.Split(s[2], ","),
		})
	}
	var hs []Hierarchy
	for line := range strings.Lines(groups) {
		// 4:memory:/user.slice
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		i := slices.IndexFunc(mounts, func(m mounted) bool { return m.carries(f[1]) })
		if i < 0 {
			continue
		}
		hs = append(hs, Hierarchy{Controllers: f[1], Mount: mounts[i].mount, Parent: mounts[i].folder(f[2])})
	}
	return hs
}

// carries reports whether the mount is the hierarchy of the given controllers.
func (m mounted) carries(controllers string) bool {
	if controllers == "" || m.unified {
		return controllers == "" && m.unified
	}
	for c := range strings.SplitSeq(controllers, ",") {
		if !slices.Contains(m.options, c) {
			return false
		}
	}
	return true
}

// folder is where the mount shows a group.
func (m mounted) folder(group string) string {
	rel, err := filepath.Rel(m.root, group)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return m.mount // the group is outside the mounted part
	}
	return filepath.Join(m.mount, rel)
}

// Type is the hierarchy's file system type.
func (h Hierarchy) Type() string {
	if h.Unified() {
		return "cgroup2"
	}
	return "cgroup"
}

// Options are mount options that mount the hierarchy once more.
func (h Hierarchy) Options() string {
	if strings.HasPrefix(h.Controllers, "name=") {
		return "none," + h.Controllers
	}
	return h.Controllers
}

// Delegate enables every controller of a v2 group for its children. In v1 it does nothing.
func (h Hierarchy) Delegate(dir string) error {
	if !h.Unified() {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(text)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			return fmt.Errorf("delegate controller %s in %s: %w", c, dir, err)
		}
	}
	return nil
}
