package peering

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

func connectOptions(a, b *world) ConnectOptions {
	o := unchangedOptions(a, b)
	o.Local.Gateways, o.Remote.Gateways = 1, 1
	return o
}

// unchangedOptions say nothing of the number of gateways.
func unchangedOptions(a, b *world) ConnectOptions {
	return ConnectOptions{
		Local: Side{Cluster: a.Cluster}, Remote: Side{Cluster: b.Cluster},
		Installation: Installation{Image: "liqonet:1"},
		Options:      Options{Service: templates.ServiceValues{Type: corev1.ServiceTypeNodePort}},
		Timeout:      time.Minute,
	}
}

// peeringOf reads the one peering of a cluster.
func peeringOf(t *testing.T, w *world) records.Peering {
	t.Helper()
	all, err := inventory.Peerings(t.Context(), w.Cluster)
	if err != nil || len(all) != 1 {
		t.Fatalf("peerings of %s: %v, %v", w.Context, all, err)
	}
	return all[0]
}

// tunnelOf is the first tunnel of a peering.
func tunnelOf(p records.Peering) records.Tunnel { return p.Gateways[0].Tunnels[0] }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func TestConnectWritesBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		got, err := Connect(t.Context(), connectOptions(a, b), &recorder{})
		if err != nil {
			t.Fatal(err)
		}
		client, server := peeringOf(t, a), peeringOf(t, b)
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

// checkKeys compares what each side holds with what the other was told.
func checkKeys(t *testing.T, a, b *world) {
	t.Helper()
	ka, err := inventory.ReadKeys(t.Context(), a.Cluster, first("b"))
	if err != nil || ka == nil {
		t.Fatal(ka, err)
	}
	kb, err := inventory.ReadKeys(t.Context(), b.Cluster, first("a"))
	if err != nil || kb == nil {
		t.Fatal(kb, err)
	}
	if tunnelOf(peeringOf(t, a)).PublicKey != kb.Public() || tunnelOf(peeringOf(t, b)).PublicKey != ka.Public() {
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

// contents is everything that liqoctl writes in a cluster, as text by object.
func contents(t *testing.T, w *world) map[string]string { return contentsOf(t, w.Cluster) }

func contentsOf(t *testing.T, c *cluster.Cluster) map[string]string {
	t.Helper()
	objects, err := c.List(t.Context(), records.LabelComponent)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, o := range objects {
		if component := o.GetLabels()[records.LabelComponent]; component == records.ComponentNode || component == records.ComponentStatus {
			continue // written by helpers
		}
		o.SetManagedFields(nil)
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%T %s", o, o.GetName())] = string(text)
	}
	return all
}

func TestConnectAgainChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &recorder{}); err != nil {
			t.Fatal(err)
		}
		before := contents(t, a)
		got, err := Connect(t.Context(), connectOptions(a, b), &recorder{})
		if err != nil || got.Changed || len(got.Objects) > 0 {
			t.Errorf("changed %v, %v, %v", got.Changed, got.Objects, err)
		}
		if diff := cmp.Diff(before, contents(t, a)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOtherParametersNeedUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		o := connectOptions(a, b)
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		before := contents(t, a)
		o.MTU, o.Image = new(1300), "liqonet:2"
		_, err := Connect(t.Context(), o, &recorder{})
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
		if diff := cmp.Diff(before, contents(t, a)); diff != "" {
			t.Errorf("refused, and yet:\n%s", diff)
		}
		o.Update = true
		got, err := Connect(t.Context(), o, &recorder{})
		if err != nil || !got.Changed || peeringOf(t, a).MTU != 1300 || peeringOf(t, b).MTU != 1300 {
			t.Errorf("update: %v, %v", got.Changed, err)
		}
	})
}

func TestRolesChangePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		o := connectOptions(a, b)
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		o.LocalServes, o.Update = new(true), true
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Fatal(err)
		}
		if p := peeringOf(t, b); p.Role != records.Client || len(p.Endpoints()) != 2 {
			t.Errorf("document of b: %+v", p)
		}
		for w, want := range map[*world]int{a: 1, b: 0} {
			services, err := w.kube.CoreV1().Services(w.Namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(services.Items) != want {
				t.Errorf("cluster %s has %d services, %v", w.Context, len(services.Items), err)
			}
		}
	})
}

// killers are how many reactors killAt puts in front of each cluster's.
const killers = 4

// killAt ends the context at the nth write of liqoctl's to either cluster, as a kill would: the write is carried
// out or not, and nothing after it is.
func killAt(n int, cancel context.CancelFunc, worlds ...*world) (count func() int) {
	var mu sync.Mutex
	writes := 0
	for _, w := range worlds {
		react := func(action clienttesting.Action) (bool, runtime.Object, error) {
			if patch, ok := action.(clienttesting.PatchActionImpl); ok && (patch.PatchType != "application/apply-patch+yaml" || len(patch.PatchOptions.DryRun) > 0) {
				return false, nil, nil
			}
			if action.GetResource().Resource == "selfsubjectaccessreviews" || action.GetSubresource() != "" {
				return false, nil, nil
			}
			if kind := action.GetResource().Resource; action.GetVerb() == "delete" && (kind == "pods" || kind == "leases") {
				return false, nil, nil // it is a controller's
			}
			mu.Lock()
			defer mu.Unlock()
			writes++
			if n > 0 && writes >= n {
				cancel()
				return true, nil, context.Canceled
			}
			return false, nil, nil
		}
		w.kube.PrependReactor("patch", "*", react)
		w.kube.PrependReactor("create", "configmaps", react)
		w.kube.PrependReactor("create", "secrets", react)
		w.kube.PrependReactor("delete", "*", react)
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return writes
	}
}

// noKill takes the reactors of killAt away.
func noKill(worlds ...*world) {
	for _, w := range worlds {
		w.set(func() { w.kube.ReactionChain = w.kube.ReactionChain[killers:] })
	}
}

func TestInterruptedConnectCanBeRunAgain(t *testing.T) {
	t.Parallel()
	total := 0
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		count := killAt(0, nil, a, b)
		live(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &recorder{}); err != nil {
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
				a, b := twoWorlds()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				count := killAt(n, cancel, a, b)
				live(t, a, b)
				o := connectOptions(a, b)
				// A killed process undoes nothing.
				o.Keep = true
				// A run may need fewer writes than another.
				if _, err := Connect(ctx, o, &recorder{}); err == nil && count() >= n {
					t.Fatal("connected in spite of the interruption")
				}
				noKill(a, b)
				if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
					t.Fatal(err)
				}
				checkKeys(t, a, b)
			})
		})
	}
}

func TestFailedConnectLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		b.stuck = "ImagePullBackOff"
		live(t, a, b)
		r := &recorder{}
		_, err := Connect(t.Context(), connectOptions(a, b), r)
		var pod *cluster.PodError
		var stage *progress.StageError
		if !errors.As(err, &pod) || !errors.As(err, &stage) || stage.Stage != progress.StageNodes || stage.Hint() != pod.Hint() {
			t.Fatalf("error %v", err)
		}
		for _, w := range []*world{a, b} {
			if left := w.left(t); len(left) > 0 {
				t.Errorf("cluster %s: left %v\n%v", w.Context, left, r.said())
			}
			if want := fmt.Sprintf("note cluster %q: rolled back, removed the installation", w.Context); !slices.Contains(r.said(), want) {
				t.Errorf("want %q in %q", want, r.said())
			}
		}
	})
}

func TestFailedConnectKeepsWhatStood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		if _, err := Connect(t.Context(), connectOptions(a, b), &recorder{}); err != nil {
			t.Fatal(err)
		}
		before := contents(t, a)
		b.set(func() { b.deaf = true })
		o := connectOptions(a, b)
		o.MTU, o.Update, o.Timeout = new(1300), true, 5*time.Second
		if _, err := Connect(t.Context(), o, &recorder{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "--timeout") {
			t.Fatalf("error %v", err)
		}
		if after := contents(t, a); len(after) != len(before) {
			t.Errorf("objects: %d before, %d after", len(before), len(after))
		}
	})
}

func TestConnectRefuses(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(a, b *world, o *ConnectOptions)
		want    string // in the error
		hint    string
	}{
		{"the same cluster", func(a, _ *world, o *ConnectOptions) { o.Remote.Cluster = a.Cluster }, "are the same cluster", "--remote-context"},
		{"equal names", func(_, _ *world, o *ConnectOptions) { o.Remote.Name = "a" }, "both clusters have the name", "--remote-name"},
		{"kernel WireGuard that is not there", func(_, b *world, o *ConnectOptions) {
			b.kernel.WireGuard = false
			o.Implementation = records.Kernel
		}, "none on b1 (kernel 6.12.0), b2", "--wireguard auto"},
		{"an overlay that is not there", func(_, b *world, o *ConnectOptions) {
			b.kernel.Geneve = false
			o.Overlay = records.Geneve
		}, "no geneve on b1", "load kernel module"},
		{"an internal CIDR in use", func(_, _ *world, o *ConnectOptions) { o.Local.InternalCIDR = prefix("10.244.0.0/17") }, "conflict with pod CIDR", "ipam list"},
		{"a firewall on the nodes", func(_, b *world, _ *ConnectOptions) { b.drops = []records.ForwardDrop{{Chain: "ip filter FORWARD"}} },
			`cluster "b": firewalls drop what nodes forward: b1 (chain "ip filter FORWARD"), b2`,
			"--allow-forward; or have these chains accept packets from and to links lqn-*"},
		{"no load balancer", func(_, _ *world, o *ConnectOptions) { o.Service.Type = corev1.ServiceTypeLoadBalancer }, "no load balancer address yet", "NodePort"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := twoWorlds()
				o := connectOptions(a, b)
				o.Timeout = 5 * time.Second
				tt.prepare(a, b, &o)
				live(t, a, b)
				_, err := Connect(t.Context(), o, &recorder{})
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hint.Of(err), tt.hint) {
					t.Errorf("error %v, hint %q", err, hint.Of(err))
				}
				if left := append(a.left(t), b.left(t)...); len(left) > 0 {
					t.Errorf("left %v", left)
				}
			})
		})
	}
}
