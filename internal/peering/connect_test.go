package peering

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// tunnelOf returns the first tunnel of a peering.
func tunnelOf(p records.Peering) records.Tunnel { return p.Gateways[0].Tunnels[0] }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestConnectWritesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		fakecluster.Run(t, a, b)
		got, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{})
		require.NoError(t, err)
		client, server := a.Peering(t), b.Peering(t)
		want := records.Peering{
			Version: records.SchemaVersion, Name: "b", Role: records.Client,
			Peer: records.Peer{
				ClusterID: "uid-b", Name: "b",
				PodCIDRs:     []records.Mapping{{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")}},
				ExternalCIDR: records.Mapping{Real: prefix("10.70.0.0/16"), Seen: prefix("10.81.0.0/16")},
			},
			Local: records.Local{
				PodCIDRs:     []records.Mapping{{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")}},
				ExternalCIDR: records.Mapping{Real: prefix("10.70.0.0/16"), Seen: prefix("10.81.0.0/16")},
			},
			Gateways: []records.LocalGateway{{Address: netip.MustParseAddr("10.80.128.1"), OverlayID: 0x8001, Tunnels: []records.Tunnel{{
				PublicKey: tunnelOf(client).PublicKey, Address: prefix("169.254.18.2/30"),
				PeerAddress: netip.MustParseAddr("169.254.18.1"), ListenPort: 51840,
				Endpoints: []string{"172.31.2.11:30840", "172.31.2.12:30840"},
			}}}},
			Implementation: records.Auto, MTU: 1420, ClampMSS: true,
		}
		if diff := cmp.Diff(want, client, comparePrefixes()...); diff != "" {
			t.Errorf("client's document:\n%s", diff)
		}
		if diff := cmp.Diff(client.Peer.CIDRs(), server.Local.CIDRs(), comparePrefixes()...); diff != "" {
			t.Errorf("how the client sees the server, by both documents:\n%s", diff)
		}
		if server.Name != "a" || server.Role != records.Server || len(server.Endpoints()) != 0 {
			t.Errorf("server's document: %+v", server)
		}
		fabric, err := inventory.Fabric(t.Context(), a.Cluster)
		if err != nil || fabric.Overlay.Kind != records.Geneve || fabric.MTU != 1500 || fabric.ClusterID != "uid-a" {
			t.Errorf("fabric %+v, %v", fabric, err)
		}
		checkKeys(t, a, b)
		if !got.Changed || got.Local.Peering != "b" || len(got.Local.Proof.Nodes) != 2 || got.Took > 10*time.Second {
			t.Errorf("result %+v", got)
		}
	})
}

// checkKeys compares the keys of each cluster with those in the peer's record.
func checkKeys(t *testing.T, a, b *fakecluster.Cluster) {
	t.Helper()
	ka, err := inventory.ReadKeys(t.Context(), a.Cluster, fakecluster.FirstGateway("b"))
	if err != nil || ka == nil {
		t.Fatal(ka, err)
	}
	kb, err := inventory.ReadKeys(t.Context(), b.Cluster, fakecluster.FirstGateway("a"))
	if err != nil || kb == nil {
		t.Fatal(kb, err)
	}
	if tunnelOf(a.Peering(t)).PublicKey != kb.Public() || tunnelOf(b.Peering(t)).PublicKey != ka.Public() {
		t.Error("public keys are not the other side's")
	}
	if ka.Preshared() != kb.Preshared() || ka.Preshared() == (wgtypes.Key{}) {
		t.Error("preshared keys differ or are missing")
	}
	if ka.Private() == kb.Private() {
		t.Error("both sides have the same private key")
	}
}

func comparePrefixes() []cmp.Option {
	return []cmp.Option{
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	}
}

func TestConnectAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		fakecluster.Run(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{}); err != nil {
			t.Fatal(err)
		}
		before := fakecluster.Contents(t, a.Cluster)
		got, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{})
		if err != nil || got.Changed || len(got.Objects) > 0 {
			t.Errorf("changed %v, %v, %v", got.Changed, got.Objects, err)
		}
		if diff := cmp.Diff(before, fakecluster.Contents(t, a.Cluster)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOtherParametersNeedUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		fakecluster.Run(t, a, b)
		o := connectOptions(a, b)
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
			t.Fatal(err)
		}
		before := fakecluster.Contents(t, a.Cluster)
		o.MTU, o.Image = new(1300), "liqonet:2"
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		var differs *plan.DifferenceError
		if !errors.As(err, &differs) || !strings.Contains(hint.Of(err), "--update") {
			t.Fatalf("error %v", err)
		}
		lines := strings.Join(differs.Lines, "\n")
		for _, want := range []string{"mtu: 1420 -> 1300", `"liqonet:1" -> "liqonet:2"`, "DaemonSet node", "Deployment gateway-b"} {
			if !strings.Contains(lines, want) {
				t.Errorf("no %q in:\n%s", want, lines)
			}
		}
		if diff := cmp.Diff(before, fakecluster.Contents(t, a.Cluster)); diff != "" {
			t.Errorf("refused, and yet:\n%s", diff)
		}
		o.Update = true
		got, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || !got.Changed || a.Peering(t).MTU != 1300 || b.Peering(t).MTU != 1300 {
			t.Errorf("update: %v, %v", got.Changed, err)
		}
	})
}

func TestRolesChangePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		fakecluster.Run(t, a, b)
		o := connectOptions(a, b)
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
			t.Fatal(err)
		}
		o.LocalServes, o.Update = new(true), true
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
			t.Fatal(err)
		}
		if p := b.Peering(t); p.Role != records.Client || len(p.Endpoints()) != 2 {
			t.Errorf("document of b: %+v", p)
		}
		for w, want := range map[*fakecluster.Cluster]int{a: 1, b: 0} {
			services, err := w.Fake.CoreV1().Services(w.Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(services.Items) != want {
				t.Errorf("cluster %s has %d services, %v", w.Context, len(services.Items), err)
			}
		}
	})
}

func TestInterruptedConnectCanBeRunAgain(t *testing.T) {
	t.Parallel()
	total := 0
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		count := fakecluster.KillAt(0, nil, a, b)
		fakecluster.Run(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{}); err != nil {
			t.Fatal(err)
		}
		total = count()
	})
	if total < 30 {
		t.Fatalf("only %d writes seen", total)
	}
	for n := 1; n <= total; n++ {
		t.Run(fmt.Sprintf("write%02d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := fakecluster.Pair()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				count := fakecluster.KillAt(n, cancel, a, b)
				fakecluster.Run(t, a, b)
				o := connectOptions(a, b)
				// A killed process does not roll back.
				o.Keep = true
				// Runs differ in their number of writes.
				if _, err := Connect(ctx, o, &fakecluster.Recorder{}); err == nil && count() >= n {
					t.Fatal("connected in spite of the interruption")
				}
				fakecluster.NoKill(a, b)
				if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
					t.Fatal(err)
				}
				checkKeys(t, a, b)
			})
		})
	}
}

func TestFailedConnectLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		b.PodFailure = "ImagePullBackOff"
		fakecluster.Run(t, a, b)
		r := &fakecluster.Recorder{}
		_, err := Connect(t.Context(), connectOptions(a, b), r)
		var pod *kube.PodError
		var stage *progress.StageError
		if !errors.As(err, &pod) || !errors.As(err, &stage) || stage.Stage != progress.StageNodes || stage.Hint() != pod.Hint() {
			t.Fatalf("error %v", err)
		}
		for _, w := range []*fakecluster.Cluster{a, b} {
			if left := w.Left(t); len(left) > 0 {
				t.Errorf("cluster %s: left %v\n%v", w.Context, left, r.Lines())
			}
			if want := fmt.Sprintf("note cluster %q: rolled back, removed the installation", w.Context); !slices.Contains(r.Lines(), want) {
				t.Errorf("want %q in %q", want, r.Lines())
			}
		}
	})
}

func TestFailedConnectKeepsExistingObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		fakecluster.Run(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &fakecluster.Recorder{}); err != nil {
			t.Fatal(err)
		}
		before := fakecluster.Contents(t, a.Cluster)
		b.Set(func() { b.IgnoresRecords = true })
		o := connectOptions(a, b)
		o.MTU, o.Update, o.Timeout = new(1300), true, 5*time.Second
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "--timeout") {
			t.Fatalf("error %v", err)
		}
		if after := fakecluster.Contents(t, a.Cluster); len(after) != len(before) {
			t.Errorf("objects: %d before, %d after", len(before), len(after))
		}
	})
}

func TestConnectRefuses(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(a, b *fakecluster.Cluster, o *ConnectOptions)
		want    string // contained in the error
		hint    string
	}{
		{"the same cluster", func(a, _ *fakecluster.Cluster, o *ConnectOptions) { o.Remote.Cluster = a.Cluster }, "are the same cluster", "--remote-context"},
		{"equal names", func(_, _ *fakecluster.Cluster, o *ConnectOptions) { o.Remote.Name = "a" }, "both clusters have the name", "--remote-name"},
		{"kernel WireGuard that is not there", func(_, b *fakecluster.Cluster, o *ConnectOptions) {
			b.Capabilities.WireGuard = false
			o.Implementation = records.Kernel
		}, "none on b1 (kernel 6.12.0), b2", "--wireguard auto"},
		{"an overlay that is not there", func(_, b *fakecluster.Cluster, o *ConnectOptions) {
			b.Capabilities.Geneve = false
			o.Overlay = records.Geneve
		}, "no geneve on b1", "load kernel module"},
		{"an internal CIDR in use", func(_, _ *fakecluster.Cluster, o *ConnectOptions) { o.Local.InternalCIDR = prefix("10.244.0.0/17") }, "conflict with pod CIDR", "ipam list"},
		{"a firewall on the nodes", func(_, b *fakecluster.Cluster, _ *ConnectOptions) {
			b.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}}
		},
			`cluster "b": firewalls drop what nodes forward: b1 (chain "ip filter FORWARD"), b2`,
			"--allow-forward; or have these chains accept packets from and to links lqn-*"},
		{"no load balancer", func(_, _ *fakecluster.Cluster, o *ConnectOptions) { o.Service.Type = corev1.ServiceTypeLoadBalancer }, "no load balancer address yet", "NodePort"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := fakecluster.Pair()
				o := connectOptions(a, b)
				o.Timeout = 5 * time.Second
				tt.prepare(a, b, &o)
				fakecluster.Run(t, a, b)
				_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hint.Of(err), tt.hint) {
					t.Errorf("error %v, hint %q", err, hint.Of(err))
				}
				if left := append(a.Left(t), b.Left(t)...); len(left) > 0 {
					t.Errorf("left %v", left)
				}
			})
		})
	}
}
