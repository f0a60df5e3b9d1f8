package memory

import (
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestFollowContainer(t *testing.T) {
	const v1, v2 = "sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory.max"
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, c := range map[string]struct {
		file, text, variable string
		want                 int64 // 0: the limit stays
		err                  bool
	}{
		"cgroup v2":             {file: v2, text: "268435456\n", want: 228170137},
		"cgroup v2, no limit":   {file: v2, text: "max\n"},
		"cgroup v1":             {file: v1, text: "268435456\n", want: 228170137},
		"cgroup v1, no limit":   {file: v1, text: "9223372036854771712\n"},
		"no cgroup":             {file: "etc/hosts"},
		"a variable":            {file: v2, text: "268435456\n", variable: "100MiB"},
		"something that is not": {file: v2, text: "many\n", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOMEMLIMIT", c.variable)
			debug.SetMemoryLimit(math.MaxInt64)
			got, err := FollowContainer(fstest.MapFS{c.file: &fstest.MapFile{Data: []byte(c.text)}})
			set := debug.SetMemoryLimit(-1)
			if got != c.want || (err != nil) != c.err || c.want != 0 && set != c.want || c.want == 0 && set != math.MaxInt64 {
				t.Errorf("%d, %v; set is %d, want %d", got, err, set, c.want)
			}
		})
	}
}
