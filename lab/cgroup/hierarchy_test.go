package cgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		mounts, groups string
		want           []Hierarchy
	}{
		"v2": {
			mounts: "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" +
				"30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			groups: "0::/user.slice/session-1.scope\n",
			want: []Hierarchy{
				{Controllers: "", Mount: "/sys/fs/cgroup", Parent: "/sys/fs/cgroup/user.slice/session-1.scope"},
			},
		},
		"v1 with joined controllers": {
			mounts: "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"32 30 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n",
			groups: "4:name=systemd:/a\n3:cpu,cpuacct:/\n2:memory:/not-mounted\n",
			want: []Hierarchy{
				{Controllers: "name=systemd", Mount: "/sys/fs/cgroup/systemd", Parent: "/sys/fs/cgroup/systemd/a"},
				{Controllers: "cpu,cpuacct", Mount: "/sys/fs/cgroup/cpu,cpuacct", Parent: "/sys/fs/cgroup/cpu,cpuacct"},
			},
		},
		"hybrid": {
			mounts: "31 30 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
				"33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			groups: "1:cpu:/\n0::/\n",
			want: []Hierarchy{
				{Controllers: "cpu", Mount: "/sys/fs/cgroup/cpu", Parent: "/sys/fs/cgroup/cpu"},
				{Controllers: "", Mount: "/sys/fs/cgroup/unified", Parent: "/sys/fs/cgroup/unified"},
			},
		},
		"container without a namespace": {
			mounts: "31 30 0:27 /docker/1f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
			groups: "5:memory:/docker/1f/init\n",
			want: []Hierarchy{
				{Controllers: "memory", Mount: "/sys/fs/cgroup/memory", Parent: "/sys/fs/cgroup/memory/init"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, parse(tc.mounts, tc.groups)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMountOptions(t *testing.T) {
	for controllers, want := range map[string][2]string{
		"cpu,cpuacct":  {"cgroup", "cpu,cpuacct"},
		"name=systemd": {"cgroup", "none,name=systemd"},
		"":             {"cgroup2", ""},
	} {
		h := Hierarchy{Controllers: controllers}
		if got := [2]string{h.Type(), h.Options()}; got != want {
			t.Errorf("%q: %q, want %q", controllers, got, want)
		}
	}
}
