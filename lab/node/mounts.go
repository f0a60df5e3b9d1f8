package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/cgroup"
)

// hostSysctls are settings of the whole machine that kubelet wants and would write: in a node it finds them
// as it wants them, in files that are mounted over the real ones.
var hostSysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// makeMounts turns the host's file system, as this mount namespace has it, into the node's: the host's
// programs read-only, and folders of the node's own wherever a node writes.
func makeMounts(c Config) error {
	if err := mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	// The folders are taken hold of before what leads to them is covered.
	shared, err := clone(map[string]string{
		c.Tools: ToolsDir, c.Images: ImagesDir, c.conf(): ConfDir, filepath.Join(c.Disk, "var"): "/var",
	})
	if err != nil {
		return err
	}
	if err := coverEtc(c); err != nil {
		return err
	}
	for _, dir := range []string{"/run", "/tmp", "/opt"} {
		if err := mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	if err := os.Chmod("/tmp", 0o777|os.ModeSticky); err != nil {
		return err
	}
	for _, s := range shared {
		if err := s.attach(); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/var/lib", "/var/log", "/var/tmp"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := mountKernel(c.Group.Hierarchies); err != nil {
		return err
	}
	// What is still the host's cannot be written: a pod's hostPath leaves no trace there.
	if err := mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}

// mountKernel shows the kernel's view of the node's namespaces.
func mountKernel(groups []cgroup.Hierarchy) error {
	if err := mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return err
	}
	if err := mountCgroups(groups); err != nil {
		return err
	}
	return coverSysctls()
}

// tree is a mounted folder that is not attached anywhere yet.
type tree struct {
	fd     int
	target string
}

// clone takes hold of host folders, made if missing, to attach them elsewhere.
func clone(targets map[string]string) ([]tree, error) {
	var trees []tree
	for source, target := range targets {
		if err := os.MkdirAll(source, 0o755); err != nil {
			return nil, err
		}
		fd, err := unix.OpenTree(unix.AT_FDCWD, source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("clone mount of %s: %w", source, err)
		}
		trees = append(trees, tree{fd, target})
	}
	return trees, nil
}

func (t tree) attach() error {
	defer unix.Close(t.fd)
	if err := os.MkdirAll(t.target, 0o755); err != nil {
		return err
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount on %s: %w", t.target, err)
	}
	return nil
}

// coverEtc lets the node change its copy of the host's /etc.
func coverEtc(c Config) error {
	upper, work := filepath.Join(c.Disk, "etc"), filepath.Join(c.Disk, "etc.work")
	for _, dir := range []string{upper, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// Networks that are configured on the host are not the node's.
	cni := filepath.Join(upper, "cni")
	if err := os.MkdirAll(cni, 0o755); err != nil {
		return err
	}
	if err := unix.Setxattr(cni, "trusted.overlay.opaque", []byte("y"), 0); err != nil {
		return fmt.Errorf("cover /etc/cni: %w", err)
	}
	return mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+work)
}

// cgroupRoot is where programs look for control groups.
const cgroupRoot = "/sys/fs/cgroup"

// mountCgroups shows the hierarchies as on the host, with the node's group as their root.
func mountCgroups(hs []cgroup.Hierarchy) error {
	if onlyV2(hs) {
		if err := mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
			return err
		}
		return hs[0].JoinLeaf(cgroupRoot, "init")
	}
	if err := mount("tmpfs", cgroupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, h := range hs {
		dir := hierarchyFolder(h)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := mount(h.Type(), dir, h.Type(), 0, h.Options()); err != nil {
			return err
		}
	}
	return nil
}

// onlyV2 reports whether cgroup v2 is all there is.
func onlyV2(hs []cgroup.Hierarchy) bool { return len(hs) == 1 && hs[0].Unified() }

// hierarchyFolder is where a node has one of several hierarchies.
func hierarchyFolder(h cgroup.Hierarchy) string {
	return filepath.Join(cgroupRoot, filepath.Base(h.Mount))
}

// CgroupV2 returns where nodes have the hierarchy of cgroup v2.
func CgroupV2(hs []cgroup.Hierarchy) (string, error) {
	if onlyV2(hs) {
		return cgroupRoot, nil
	}
	i := slices.IndexFunc(hs, cgroup.Hierarchy.Unified)
	if i < 0 {
		return "", errors.New("this machine has no cgroup v2")
	}
	return hierarchyFolder(hs[i]), nil
}

// coverSysctls mounts files over the settings of the whole machine.
func coverSysctls() error {
	for key, value := range hostSysctls {
		file := filepath.Join("/run", "sysctl-"+strings.ReplaceAll(key, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := mount(file, filepath.Join("/proc/sys", key), "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", source, target, err)
	}
	return nil
}
