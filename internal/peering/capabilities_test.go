package peering

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// TestFirewallsOfNodes connects clusters whose nodes drop forwarded packets, with the options that allow it.
func TestFirewallsOfNodes(t *testing.T) {
	tests := []struct {
		name  string
		word  func(*ConnectOptions)
		warns bool // of firewalls without added rules
		allow bool // in the record, for the helpers
	}{
		{"rules are wanted", func(o *ConnectOptions) { o.AllowForward = new(true) }, false, true},
		{"validation is skipped", func(o *ConnectOptions) { o.SkipValidation = true }, true, false},
	}
	for _, tt := range tests {
		bubble.Run(t, tt.name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			b.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}, {Chain: "inet strict guards"}}
			fakecluster.Run(t, a, b)
			o, r := connectOptions(a, b), &fakecluster.Recorder{}
			tt.word(&o)
			_, err := Connect(t.Context(), o, r)
			require.NoError(t, err)
			warned := slices.ContainsFunc(r.Lines(), func(line string) bool {
				return strings.HasPrefix(line, "warn") && strings.Contains(line, `chain "inet strict guards"`)
			})
			if warned != tt.warns {
				t.Errorf("warned: %v, want %v: %v", warned, tt.warns, r.Lines())
			}
			for _, w := range []*fakecluster.Cluster{a, b} {
				fabric, err := inventory.Fabric(t.Context(), w.Cluster)
				if err != nil || fabric.AllowForward != tt.allow {
					t.Errorf("cluster %s: fabric %+v, %v", w.Context, fabric, err)
				}
			}
			// A check never fails for an existing peering, and a permission once given remains.
			o.AllowForward, o.SkipValidation = nil, false
			if again, err := Connect(t.Context(), o, r); err != nil || again.Changed {
				t.Errorf("again: changed %v, %v", again.Changed, err)
			}
		})
	}
}

// TestFirewallsAreRefusedFirst: a connect that fails because of a firewall writes nothing if liqonet is installed;
// otherwise it leaves only the installation, even with Keep.
func TestFirewallsAreRefusedFirst(t *testing.T) {
	refused := func(t *testing.T, o ConnectOptions, stage string) {
		t.Helper()
		o.Keep = true
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		failed, _ := errors.AsType[*progress.StageError](err)
		if failed == nil || failed.Stage != stage || !strings.Contains(err.Error(), `chain "ip filter FORWARD"`) {
			t.Fatalf("error %v, want one of stage %s", err, stage)
		}
	}
	bubble.Run(t, "installed", func(t *testing.T) {
		a, b := fakecluster.Pair()
		b.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}}
		fakecluster.Run(t, a, b)
		o := connectOptions(a, b)
		for _, side := range []Side{o.Local, o.Remote} {
			fakecluster.Must(t, Init, InitOptions{Side: side, Installation: o.Installation})
		}
		before := [2]map[string]string{fakecluster.Contents(t, a.Cluster), fakecluster.Contents(t, b.Cluster)}
		refused(t, o, progress.StageDiscover)
		for i, w := range []*fakecluster.Cluster{a, b} {
			assert.Equal(t, "objects of cluster "+w.Context, before[i], fakecluster.Contents(t, w.Cluster))
		}
	})
	bubble.Run(t, "not installed", func(t *testing.T) {
		a, b := fakecluster.Pair()
		b.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}}
		fakecluster.Run(t, a, b)
		refused(t, connectOptions(a, b), progress.StageNodes)
		for w, peer := range map[*fakecluster.Cluster]string{a: "b", b: "a"} {
			for _, name := range w.Left(t) {
				if strings.Contains(name, "Secret") || strings.Contains(name, "gateway") || strings.Contains(name, "peering") {
					t.Errorf("cluster %s has %s", w.Context, name)
				}
			}
			registry, err := inventory.Reservations(t.Context(), w.Cluster)
			require.NoError(t, err)
			if held := registry.Held(ipam.Peering(peer)); len(held) > 0 {
				t.Errorf("cluster %s has reserved %v", w.Context, held)
			}
		}
	})
}

// TestInitWarnsOfFirewalls: an installation without peers warns of what connect will reject.
func TestInitWarnsOfFirewalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.Pair()
		a.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}}
		fakecluster.Run(t, a)
		r := &fakecluster.Recorder{}
		o := connectOptions(a, a)
		_, err := Init(t.Context(), InitOptions{Side: o.Local, Installation: o.Installation}, r)
		require.NoError(t, err)
		if output := r.Output(); !strings.Contains(output, "--allow-forward") {
			t.Errorf("output:\n%s", output)
		}
	})
}
