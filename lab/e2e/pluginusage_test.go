package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
)

// idleTime is how long connected clusters without traffic of pods are watched.
const idleTime = time.Minute

// usage is what the containers of a pod use.
type usage struct {
	processor time.Duration // since they started
	memory    int           // bytes, anonymous
}

// testUsage logs what the pods of liqonet and of network plugins use without traffic, and while every pod sends 10 MB
// to every pod of the other cluster and back.
func testUsage(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) {
	t.Helper()
	before := usages(ctx, t, l, conn)
	select {
	case <-time.After(idleTime): // what is measured takes this long
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	idle := usages(ctx, t, l, conn)
	begun := time.Now()
	testBulk(ctx, t, l, conn)
	took := time.Since(begun)
	busy := usages(ctx, t, l, conn)
	t.Logf("memory, processor time: in %s without traffic; in %s with 2 x 80 MB of TCP", idleTime, took.Round(time.Second))
	ours := 0
	for _, name := range slices.Sorted(maps.Keys(busy)) {
		if !strings.Contains(name, "liqonet/") && !strings.Contains(name, "cilium-") && !strings.Contains(name, "kube-flannel") {
			continue
		}
		t.Logf("%-40s %4d MB  %6.2fs  %4d MB  %6.2fs", name,
			idle[name].memory>>20, (idle[name].processor - before[name].processor).Seconds(),
			busy[name].memory>>20, (busy[name].processor - idle[name].processor).Seconds())
		if strings.Contains(name, "liqonet/") {
			ours++
			if idle[name].memory == 0 || busy[name].processor == 0 {
				t.Errorf("%s: %+v, then %+v", name, idle[name], busy[name])
			}
		}
	}
	const pods = 4 + 2 // a helper on each node, and the gateways
	if ours != pods {
		t.Errorf("%d pods of liqonet, want %d", ours, pods)
	}
}

// usages are what pods use, by node, namespace and name.
func usages(ctx context.Context, t *testing.T, l *lab.Lab, conn connection) map[string]usage {
	t.Helper()
	all := map[string]usage{}
	for _, s := range sides(conn) {
		var pods struct {
			Items []struct {
				Metadata struct{ UID, Namespace, Name string }
				Spec     struct{ NodeName string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(kubectl(ctx, t, l, s.cluster, "get", "pods", "-A", "-o", "json")), &pods))
		for _, p := range pods.Items {
			// Control groups of version 1, and of version 2.
			const script = `find /sys/fs/cgroup -type d -name "pod$1" | while read d; do
	[ ! -e $d/cpuacct.usage ] || echo processor $(cat $d/cpuacct.usage)
	[ ! -e $d/memory.stat ] || awk '/^(total_rss|anon) / { print "memory", $2 }' $d/memory.stat
	[ ! -e $d/cpu.stat ] || awk '/^usage_usec/ { printf "processor %.0f\n", $2 * 1000 }' $d/cpu.stat
done`
			out, err := l.NodeExec(ctx, p.Spec.NodeName, "sh", "-c", script, "sh", p.Metadata.UID)
			require.NoError(t, err)
			var u usage
			for line := range strings.Lines(string(out)) {
				var what string
				var value int
				if _, err := fmt.Sscan(line, &what, &value); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if what == "memory" {
					u.memory = max(u.memory, value)
				} else {
					u.processor = max(u.processor, time.Duration(value))
				}
			}
			all[p.Spec.NodeName+" "+p.Metadata.Namespace+"/"+p.Metadata.Name] = u
		}
	}
	return all
}
