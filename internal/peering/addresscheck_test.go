package peering

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/addresses"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/ipam"
)

// checked is a check's findings as text, and whether each was mended.
func checked(t *testing.T, w *world, repair bool) []string {
	t.Helper()
	check, err := addresses.Check(t.Context(), addresses.CheckOptions{Cluster: w.Cluster, Repair: repair})
	if err != nil {
		t.Fatal(err)
	}
	lines := make([]string, 0, len(check.Findings))
	open := 0
	for _, f := range check.Findings {
		line := f.String()
		if f.Repaired {
			line += " [repaired]"
		} else {
			open++
		}
		if !f.Safe() && f.Hint == "" {
			t.Errorf("%s: no repair and no hint", f)
		}
		lines = append(lines, line)
	}
	if check.Open() != open {
		t.Errorf("%d open findings, want %d", check.Open(), open)
	}
	return lines
}

// change changes the reservations of a cluster behind connect's back.
func (w *world) change(t *testing.T, change func(*ipam.Registry) error) {
	t.Helper()
	if err := inventory.UpdateReservations(t.Context(), w.Cluster, change); err != nil {
		t.Fatal(err)
	}
}

func heldBy(owner ipam.Owner, purpose ipam.Purpose, text string) ipam.Reservation {
	return ipam.Reservation{Range: prefix(text), Owner: owner, Purpose: purpose}
}

// disorder is done to the reservations of a cluster that is connected with b.
type disorder struct {
	name     string
	damage   func(*testing.T, *world)
	found    []string
	repaired []string // what a repair leaves; nil: all, as it mends nothing
}

// heldWithoutNeed has what is held and not used, or may well be held.
func heldWithoutNeed() []disorder {
	return []disorder{
		{"in order", func(*testing.T, *world) {}, []string{}, []string{}},
		{"users may hold what they want", func(t *testing.T, w *world) {
			w.change(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.User("vpn"), ipam.Reserved, "192.168.0.0/24"))
			})
		}, []string{}, []string{}},
		{"orphan", func(t *testing.T, w *world) {
			w.change(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.Peering("gone"), ipam.PeerPods, "192.168.0.0/24"))
			})
		}, []string{`orphan 192.168.0.0/24 (peering "gone" pods): there is no peering "gone"`}, []string{}},
		{"begun", func(t *testing.T, w *world) {
			if err := w.Cluster.Kube.CoreV1().ConfigMaps("liqonet").Delete(t.Context(), records.PeeringName("b"), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, []string{
			`begun 10.71.0.0/16 (peering "b" pods): peering "b" is not complete: a connect runs, or was interrupted`,
			`begun 10.80.128.1/32 (peering "b" gateway address): peering "b" is not complete: a connect runs, or was interrupted`,
			`begun 10.81.0.0/16 (peering "b" external CIDR): peering "b" is not complete: a connect runs, or was interrupted`,
			`begun 172.31.2.0/24 (peering "b" underlay): peering "b" is not complete: a connect runs, or was interrupted`,
		}, nil},
		{"leak", func(t *testing.T, w *world) {
			w.change(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.Peering("b"), ipam.PeerPods, "192.168.0.0/24"))
			})
		}, []string{`leak 192.168.0.0/24 (peering "b" pods): peering "b" does not use it`}, []string{}},
	}
}

// usedWithoutHold has what is used and not held, or held by another.
func usedWithoutHold() []disorder {
	return []disorder{
		{"missing", func(t *testing.T, w *world) {
			w.change(t, func(r *ipam.Registry) error {
				_, err := r.Release(ipam.Peering("b"), ipam.PeerPods, ipam.GatewayAddress)
				return err
			})
		}, []string{
			`missing 10.71.0.0/16 (peering "b" pods): it is in use, and nothing keeps others off it`,
			`missing 10.80.128.1/32 (peering "b" gateway address): it is in use, and nothing keeps others off it`,
		}, []string{}},
		{"used twice", func(t *testing.T, w *world) {
			w.change(t, func(r *ipam.Registry) error {
				_, err := r.Release(ipam.Peering("b"), ipam.PeerPods)
				return errors.Join(err, r.Reserve(heldBy(ipam.User("vpn"), ipam.Reserved, "10.71.3.0/24")))
			})
		}, []string{
			`overlap 10.71.0.0/16 (peering "b" pods): reserve 10.71.0.0/16 for peering "b" pods: conflict with user "vpn" reserved range 10.71.3.0/24`,
		}, nil},
		{"held by what is gone", func(t *testing.T, w *world) {
			w.change(t, func(r *ipam.Registry) error {
				_, err := r.Release(ipam.Peering("b"), ipam.PeerPods)
				return errors.Join(err, r.Reserve(heldBy(ipam.Peering("gone"), ipam.PeerPods, "10.71.0.0/24")))
			})
		}, []string{
			`missing 10.71.0.0/16 (peering "b" pods): it is in use, and nothing keeps others off it`,
			`orphan 10.71.0.0/24 (peering "gone" pods): there is no peering "gone"`,
		}, []string{}},
		{"a new node network in the range of a peer", func(t *testing.T, w *world) {
			w.addNode(t, worldNode{name: "a9", podCIDR: "10.244.9.0/24", address: "10.71.0.9"})
		}, []string{
			`overlap 10.71.0.0/24 (node network): reserve 10.71.0.0/24 for node network: conflict with peering "b" pods 10.71.0.0/16`,
		}, nil},
		{"a new node network", func(t *testing.T, w *world) {
			w.addNode(t, worldNode{name: "a9", podCIDR: "10.244.9.0/24", address: "192.168.7.9"})
		}, []string{
			`missing 192.168.7.0/24 (node network): it is in use, and nothing keeps others off it`,
		}, []string{}},
	}
}

func TestCheckAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(heldWithoutNeed(), usedWithoutHold()) {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := connected(t)
				tt.damage(t, w)
				if diff := cmp.Diff(tt.found, checked(t, w, false)); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
				mended := make([]string, len(tt.found))
				for i, line := range tt.found {
					mended[i] = line + " [repaired]"
				}
				if tt.repaired == nil {
					mended, tt.repaired = tt.found, tt.found
				}
				if diff := cmp.Diff(mended, checked(t, w, true)); diff != "" {
					t.Errorf("repaired (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.repaired, checked(t, w, false)); diff != "" {
					t.Errorf("left after the repair (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// addNode gives the cluster another node, whose helper does not count here.
func (w *world) addNode(t *testing.T, n worldNode) {
	t.Helper()
	if _, err := w.Cluster.Kube.CoreV1().Nodes().Create(t.Context(), nodeObject(n), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestRepairDoesWhatWasPlanned has something change between the plan and the repair: a connect has come, and the
// range that was an orphan's is in use.
func TestRepairDoesWhatWasPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := connected(t)
		w.change(t, func(r *ipam.Registry) error {
			return errors.Join(
				r.Reserve(heldBy(ipam.Peering("gone"), ipam.PeerPods, "192.168.0.0/24")),
				r.Reserve(heldBy(ipam.Peering("new"), ipam.PeerPods, "192.168.1.0/24")))
		})
		o := addresses.CheckOptions{Cluster: w.Cluster, Repair: true}
		o.Planned = func(c addresses.CheckResult) error {
			if len(c.Findings) != 2 || c.Open() != 2 {
				t.Errorf("planned %v", c.Findings)
			}
			secret := &corev1.Secret{ObjectMeta: inventory.Meta("liqonet", records.PeeringName("new"))}
			_, err := w.Cluster.Kube.CoreV1().Secrets("liqonet").Create(t.Context(), secret, metav1.CreateOptions{})
			w.change(t, func(r *ipam.Registry) error {
				return r.Reserve(heldBy(ipam.Peering("late"), ipam.PeerPods, "192.168.2.0/24"))
			})
			return err
		}
		check, err := addresses.Check(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, f := range check.Findings {
			kind := string(f.Kind)
			if f.Repaired {
				kind += " repaired"
			}
			kinds = append(kinds, kind)
		}
		if want := []string{"orphan repaired", "begun", "orphan"}; !slices.Equal(kinds, want) {
			t.Errorf("%s, want %s", kinds, want)
		}
		// A plan that is refused is not carried out.
		o.Planned = func(addresses.CheckResult) error { return errNo }
		if _, err := addresses.Check(t.Context(), o); !errors.Is(err, errNo) {
			t.Errorf("%v, want %v", err, errNo)
		}
		if left := checked(t, w, false); len(left) != 2 {
			t.Errorf("left %s", left)
		}
	})
}

// errNo refuses a plan.
var errNo = errors.New("no")

func TestCheckAddressesWithoutDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := connected(t)
		if err := w.Cluster.Kube.NetworkingV1().ServiceCIDRs().Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		check, err := addresses.Check(t.Context(), addresses.CheckOptions{Cluster: w.Cluster})
		if err != nil || len(check.Findings) > 0 || len(check.Notes) != 1 || !strings.Contains(check.Notes[0], "--service-cidr") {
			t.Errorf("%+v, %v", check, err)
		}
	})
}

func TestPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		o := connectOptions(a, b)
		o.Local.Pools = []netip.Prefix{prefix("172.16.0.0/12"), prefix("10.0.0.0/9")}
		got, err := Connect(t.Context(), o, &recorder{})
		if err != nil {
			t.Fatal(err)
		}
		if seen := got.Local.Mappings[0].Seen; seen != prefix("172.30.0.0/16") { // the smallest block beside the nodes
			t.Errorf("pods of b are seen as %s, want a range of the first pool", seen)
		}
		o.Local.Pools = nil
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Errorf("pools that are not told must stay: %v", err)
		}
		o.Local.Pools = []netip.Prefix{prefix("192.168.0.0/16")}
		_, err = Connect(t.Context(), o, &recorder{})
		want := `cluster "a": pools: 172.16.0.0/12, 10.0.0.0/9 -> 192.168.0.0/16`
		if difference, ok := errors.AsType[*steps.DifferenceError](err); !ok || !slices.Contains(difference.Lines, want) {
			t.Errorf("error %v, want %s", err, want)
		}
		o.Update = true
		if _, err := Connect(t.Context(), o, &recorder{}); err != nil {
			t.Error(err)
		}
		registry, err := inventory.Reservations(t.Context(), a.Cluster)
		if err != nil || !slices.Equal(registry.Pools(), o.Local.Pools) {
			t.Errorf("pools %v, %v", registry.Pools(), err)
		}
	})
}
