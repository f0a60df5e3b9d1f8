package inventory_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

func heldBy(owner ipam.Owner, purpose ipam.Purpose, text string) ipam.Reservation {
	return ipam.Reservation{Range: netip.MustParsePrefix(text), Owner: owner, Purpose: purpose}
}

// disorder is done to the reservations of a cluster that is connected with b.
type disorder struct {
	name   string
	damage func(*testing.T, *fakecluster.Cluster)
	found  []string
	mend   []func(t *testing.T, a, b *fakecluster.Cluster) // the commands that findings name; nil: none leaves nothing
}

func initUpdate(t *testing.T, a, b *fakecluster.Cluster) {
	t.Helper()
	fakecluster.Must(t, peering.Init, peering.InitOptions{Side: connected.Options(a, b).Local, Installation: peering.Installation{Image: "liqonet:1", Update: true}, Timeout: time.Minute})
}

func connectUpdate(t *testing.T, a, b *fakecluster.Cluster) {
	t.Helper()
	o := connected.Options(a, b)
	o.Update = true
	fakecluster.Must(t, peering.Connect, o)
}

func disconnectGone(t *testing.T, a, _ *fakecluster.Cluster) {
	t.Helper()
	fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Peer: "gone", OneSide: true, Timeout: time.Minute})
}

// heldWithoutNeed has what is held and not used, or may well be held.
func heldWithoutNeed() []disorder {
	return []disorder{
		{"in order", func(*testing.T, *fakecluster.Cluster) {}, []string{}, nil},
		{"users may hold what they want", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.User("vpn"), ipam.Reserved, "192.168.0.0/24"))
			})
		}, []string{}, nil},
		{"orphan", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.Peering("gone"), ipam.PeerPods, "192.168.0.0/24"))
			})
		}, []string{`orphan 192.168.0.0/24 (peering "gone" pods): there is no peering "gone"`}, mend(disconnectGone)},
		{"begun", func(t *testing.T, w *fakecluster.Cluster) {
			require.NoError(t, w.Cluster.Kube.CoreV1().ConfigMaps("liqonet").Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}))
		}, []string{
			`begun 10.71.0.0/16 (peering "b" pods): peering "b" is not complete: a connect runs, or was interrupted`,
			`begun 10.80.128.8/29 (peering "b" gateways): peering "b" is not complete: a connect runs, or was interrupted`,
			`begun 10.81.0.0/16 (peering "b" external CIDR): peering "b" is not complete: a connect runs, or was interrupted`,
			`begun 172.31.2.0/24 (peering "b" underlay): peering "b" is not complete: a connect runs, or was interrupted`,
		}, mend(connectUpdate)},
		{"leak", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.Peering("b"), ipam.PeerPods, "192.168.0.0/24"))
			})
		}, []string{`leak 192.168.0.0/24 (peering "b" pods): peering "b" does not use it`}, mend(connectUpdate)},
		{"leak of addresses", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				host := heldBy(ipam.Peering("b"), ipam.ExposedHost, "10.70.128.9/32")
				host.Real = netip.MustParsePrefix("198.51.100.9/32")
				return errors.Join(r.Reserve(heldBy(ipam.Peering("b"), ipam.Gateways, "10.80.128.32/29")), r.Reserve(host),
					r.Reserve(heldBy(ipam.Peering("b"), ipam.OutsideHost, "198.51.100.9/32")))
			})
		}, []string{
			`leak 10.70.128.9/32 (peering "b" exposed host): peering "b" does not use it`,
			`leak 10.80.128.32/29 (peering "b" gateways): peering "b" does not use it`,
			`leak 198.51.100.9/32 (peering "b" host outside): peering "b" does not use it`,
		}, mend(connectUpdate, func(t *testing.T, a, _ *fakecluster.Cluster) {
			t.Helper()
			fakecluster.Must(t, expose.Withdraw, connected.Exposing(a, "198.51.100.9"))
		})},
	}
}

// usedWithoutHold has what is used and not held, or held by another.
func usedWithoutHold() []disorder {
	return []disorder{
		{"missing", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				_, err := r.Release(ipam.Peering("b"), ipam.PeerPods, ipam.Gateways)
				return err
			})
		}, []string{
			`missing 10.71.0.0/16 (peering "b" pods): it is in use, and not reserved`,
			`missing 10.80.128.8/29 (peering "b" gateways): it is in use, and not reserved`,
		}, mend(initUpdate)},
		{"used twice", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				_, err := r.Release(ipam.Peering("b"), ipam.PeerPods)
				return errors.Join(err, r.Reserve(heldBy(ipam.User("vpn"), ipam.Reserved, "10.71.3.0/24")))
			})
		}, []string{
			`overlap 10.71.0.0/16 (peering "b" pods): reserve 10.71.0.0/16 for peering "b" pods: conflict with user "vpn" reserved range 10.71.3.0/24`,
		}, nil},
		{"held by what is gone", func(t *testing.T, w *fakecluster.Cluster) {
			w.ChangeRegistry(t, func(r *ipam.Registry) error {
				_, err := r.Release(ipam.Peering("b"), ipam.PeerPods)
				return errors.Join(err, r.Reserve(heldBy(ipam.Peering("gone"), ipam.PeerPods, "10.71.0.0/24")))
			})
		}, []string{
			`missing 10.71.0.0/16 (peering "b" pods): it is in use, and not reserved`,
			`orphan 10.71.0.0/24 (peering "gone" pods): there is no peering "gone"`,
		}, mend(disconnectGone, initUpdate)},
		{"a new node network in the range of a peer", func(t *testing.T, w *fakecluster.Cluster) {
			w.AddNode(t, fakecluster.Node{Name: "a9", PodCIDR: "10.244.9.0/24", Address: "10.71.0.9"})
		}, []string{
			`overlap 10.71.0.0/24 (node network): reserve 10.71.0.0/24 for node network: conflict with peering "b" pods 10.71.0.0/16`,
		}, nil},
		{"a new node network", func(t *testing.T, w *fakecluster.Cluster) {
			w.AddNode(t, fakecluster.Node{Name: "a9", PodCIDR: "10.244.9.0/24", Address: "192.168.7.9"})
		}, []string{
			`missing 192.168.7.0/24 (node network): it is in use, and not reserved`,
		}, mend(initUpdate)},
	}
}

func mend(commands ...func(t *testing.T, a, b *fakecluster.Cluster)) []func(t *testing.T, a, b *fakecluster.Cluster) {
	return commands
}

// TestCheckAddresses: what is not in order is found, and the commands that findings name mend it.
func TestCheckAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(heldWithoutNeed(), usedWithoutHold()) {
		bubble.Run(t, tt.name, func(t *testing.T) {
			a, b := connected.New(t)
			tt.damage(t, a)
			assert.Equal(t, "found", tt.found, a.Findings(t))
			for _, command := range tt.mend {
				command(t, a, b)
			}
			if left := a.Findings(t); tt.mend != nil && len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

func TestCheckAddressesWithoutDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := connected.New(t)
		require.NoError(t, w.Cluster.Kube.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}))
		if found := w.Findings(t); len(found) > 0 {
			t.Errorf("found %q", found)
		}
	})
}

func TestPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := connected.Options(a, b)
		o.Local.Pools = []netip.Prefix{netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("10.0.0.0/9")}
		got := fakecluster.Must(t, peering.Connect, o)
		// 172.30.0.0/16 is the smallest block beside the nodes.
		if seen := got.Local.Addresses[0].ReachedAt; seen != netip.MustParsePrefix("172.30.0.0/16") {
			t.Errorf("pods of b are seen as %s, want a range of the first pool", seen)
		}
		o.Local.Pools = nil
		fakecluster.Must(t, peering.Connect, o) // pools that are not told stay
		o.Local.Pools = []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")}
		_, err := peering.Connect(t.Context(), o, &fakecluster.Recorder{})
		want := "pools of a   172.16.0.0/12, 10.0.0.0/9 -> 192.168.0.0/16"
		if _, ok := errors.AsType[*plan.DifferenceError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
		o.Update = true
		fakecluster.Must(t, peering.Connect, o)
		registry, err := inventory.Reservations(t.Context(), a.Cluster)
		if err != nil || !slices.Equal(registry.Pools(), o.Local.Pools) {
			t.Errorf("pools %v, %v", registry.Pools(), err)
		}
	})
}
