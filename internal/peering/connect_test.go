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

	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// tunnelOf returns the first tunnel of a peering.
func tunnelOf(p records.Peering) records.Tunnel { return p.Gateways[0].Tunnels[0] }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestConnectWritesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		got := fakecluster.Must(t, Connect, connectOptions(a, b))
		client, server := a.Peering(t), b.Peering(t)
		want := records.Peering{
			Version: records.SchemaVersion, Name: "b", Number: 1, Role: records.Client,
			Peer: records.Peer{
				ClusterID: "uid-b", Name: "b",
				PodCIDRs:      []records.Mapping{{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")}},
				ExternalCIDRs: []records.Mapping{{Real: prefix("10.70.0.0/16"), Seen: prefix("10.81.0.0/16")}},
			},
			Local: records.Local{
				PodCIDRs:      []records.Mapping{{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")}},
				ExternalCIDRs: []records.Mapping{{Real: prefix("10.70.0.0/16"), Seen: prefix("10.81.0.0/16")}},
			},
			Gateways: []records.LocalGateway{{Tunnels: []records.Tunnel{{
				Driver: tunnelOf(client).Driver, ListenPort: 51840, Endpoints: []string{"172.31.2.11:30840", "172.31.2.12:30840"},
			}}}},
			Settings: records.GatewaySettings{ServiceType: new(records.NodePort)}, MTU: 1420,
		}
		assert.Equal(t, "client's document", want, client, comparePrefixes)
		assert.Equal(t, "how the client sees the server, by both documents", client.Peer.CIDRs(), server.Local.CIDRs(), comparePrefixes)
		if server.Name != "a" || server.Role != records.Server || len(server.Endpoints()) != 0 {
			t.Errorf("server's document: %+v", server)
		}
		fabric, err := inventory.Fabric(t.Context(), a.Cluster)
		if err != nil || fabric.Overlay.Kind != records.Geneve || fabric.MTU != 1500 || fabric.ClusterID != "uid-a" {
			t.Errorf("fabric %+v, %v", fabric, err)
		}
		checkKeys(t, a, b)
		if !got.Changed || got.Local.Peering != "b" || len(got.Local.Proof.Nodes) != 2 || got.Took > seconds.Duration(10*time.Second) {
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
	if acceptedKey(t, tunnelOf(a.Peering(t))) != kb.Public() || acceptedKey(t, tunnelOf(b.Peering(t))) != ka.Public() {
		t.Error("public keys are not the other side's")
	}
	if ka.Preshared() != kb.Preshared() || ka.Preshared() == (wgtypes.Key{}) {
		t.Error("preshared keys differ or are missing")
	}
	if ka.Private() == kb.Private() {
		t.Error("both sides have the same private key")
	}
}

var comparePrefixes = cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{})

func TestConnectAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		fakecluster.Must(t, Connect, connectOptions(a, b))
		before := fakecluster.Contents(t, a.Cluster)
		changesNothing(t, connectOptions(a, b))
		assert.Equal(t, "objects after a second connect", before, fakecluster.Contents(t, a.Cluster))
		installed := connectOptions(a, b)
		installed.Image, installed.NoImage = "", errors.New("not a published release")
		changesNothing(t, installed)
	})
}

func TestOtherParametersNeedUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		fakecluster.Must(t, Connect, o)
		before := fakecluster.Contents(t, a.Cluster)
		o.MTU, o.Image = new(1300), "liqonet:2"
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		var differs *plan.DifferenceError
		if !errors.As(err, &differs) || !strings.Contains(hint.Of(err), "--update") {
			t.Fatalf("error %v", err)
		}
		assert.Equal(t, "error", `the peering of a and b has other settings:
MTU                  1420 (measured) -> 1300
image                liqonet:1 -> liqonet:2
replaced pods of a   node, gateway-b
replaced pods of b   node, gateway-a`, err.Error())
		assert.Equal(t, "objects after a refusal", before, fakecluster.Contents(t, a.Cluster))
		o.Update = true
		got, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if err != nil || !got.Changed || a.Peering(t).MTU != 1300 || b.Peering(t).MTU != 1300 {
			t.Errorf("update: %v, %v", got.Changed, err)
		}
	})
}

func TestRolesChangePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connectOptions(a, b)
		fakecluster.Must(t, Connect, o)
		o.LocalServes, o.Update = new(true), true
		fakecluster.Must(t, Connect, o)
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
	for n := 0; n <= total; n++ { // 0 only counts writes
		bubble.Run(t, fmt.Sprintf("write%02d", n), func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			o := connectOptions(a, b)
			// A killed process does not roll back.
			o.Keep = true
			total = max(total, killedAt(t, n, a, b, doing(Connect, o)))
			fakecluster.Must(t, Connect, o)
			checkKeys(t, a, b)
		})
	}
	if total < 30 {
		t.Errorf("only %d writes seen", total)
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
			fakecluster.ExpectNothingLeft(t, w)
			if want := fmt.Sprintf("note cluster %q: rolled back, removed the installation", w.Context); !slices.Contains(r.Lines(), want) {
				t.Errorf("want %q in %q", want, r.Lines())
			}
		}
	})
}

func TestFailedConnectKeepsExistingObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		fakecluster.Must(t, Connect, connectOptions(a, b))
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
			o.Implementation = new(records.Kernel)
		}, "none on b1 (kernel 6.12.0), b2", "--wireguard auto"},
		{"an overlay that is not there", func(_, b *fakecluster.Cluster, o *ConnectOptions) {
			b.Capabilities.Geneve = false
			o.Overlay = records.Geneve
		}, "no geneve on b1", "load kernel module"},
		{"no image", func(_, _ *fakecluster.Cluster, o *ConnectOptions) {
			o.Image, o.NoImage = "", errors.New("not a published release")
		}, "not a published release", ""},
		{"an internal CIDR in use", func(_, _ *fakecluster.Cluster, o *ConnectOptions) { o.Local.InternalCIDR = prefix("10.244.0.0/17") }, "conflict with pod CIDR", "ipam list"},
		{"a firewall on the nodes", func(_, b *fakecluster.Cluster, _ *ConnectOptions) {
			b.ForwardDrops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}}
		},
			`cluster "b": firewalls drop what nodes forward: b1 (chain "ip filter FORWARD"), b2`,
			"--allow-forward; or have these chains accept packets from and to links lqn-*"},
		{"no load balancer", func(_, _ *fakecluster.Cluster, o *ConnectOptions) { o.ServiceType = new(records.LoadBalancer) }, "no load balancer address yet", "NodePort"},
	}
	for _, tt := range tests {
		bubble.Run(t, tt.name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			o := connectOptions(a, b)
			o.Timeout = 5 * time.Second
			tt.prepare(a, b, &o)
			fakecluster.Run(t, a, b)
			_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hint.Of(err), tt.hint) {
				t.Errorf("error %v, hint %q", err, hint.Of(err))
			}
			fakecluster.ExpectNothingLeft(t, a, b)
		})
	}
}

// TestEqualNames checks that clusters whose contexts give the same name get longer ones, and that a name which cannot
// change is an error that says how to choose another one.
func TestEqualNames(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   string // contexts
		want   [2]string
		set    string // --name of a
		refuse bool
	}{
		"regions":         {"arn:aws:eks:eu-west-1:123456789012:cluster/prod", "arn:aws:eks:us-east-1:123456789012:cluster/prod", [2]string{"eu-west-1-prod", "us-east-1-prod"}, "", false},
		"one can change":  {"prod", "admin@prod", [2]string{"prod", "admin-prod"}, "", false},
		"one is given":    {"x", "admin@prod", [2]string{"prod", "admin-prod"}, "prod", false},
		"none can change": {"prod", "Prod", [2]string{}, "", true},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			a, b := fakecluster.Pair()
			a.Context, b.Context = c.a, c.b
			fakecluster.Run(t, a, b)
			o := connectOptions(a, b)
			o.Local.Name = c.set
			plan, err := PlanConnect(t.Context(), o, &fakecluster.Recorder{})
			if c.refuse {
				if _, input := errors.AsType[*progress.InputError](err); !input || !strings.Contains(hint.Of(err), "--name") {
					t.Errorf("error %v, hint %q", err, hint.Of(err))
				}
				return
			}
			require.NoError(t, err)
			for i, other := range []string{c.want[1], c.want[0]} {
				if !slices.ContainsFunc(plan.Clusters[i].Changes, func(change kube.Change) bool { return change.Name == "peering-"+other }) {
					t.Errorf("%s: no peering with %s", plan.Clusters[i].Context, other)
				}
			}
		})
	}
}

// TestInitThenConnect checks that clusters that init has given one name can be connected: without peerings a name can
// change, with consent.
func TestInitThenConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.Pair()
		a.Context, b.Context = "gke_p_europe-west1_prod", "gke_p_us-east1_prod"
		fakecluster.Run(t, a, b)
		fakecluster.Must(t, Init, initOptions(a))
		fakecluster.Must(t, Init, initOptions(b))
		o := connectOptions(a, b)
		if _, err := PlanConnect(t.Context(), o, &fakecluster.Recorder{}); err != nil {
			t.Error(err)
		}
		if _, err := Connect(t.Context(), o, &fakecluster.Recorder{}); !errors.As(err, new(*plan.DifferenceError)) {
			t.Errorf("error %v", err)
		}
	})
}
