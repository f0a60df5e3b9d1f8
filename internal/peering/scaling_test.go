package peering

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// gatewayOptions returns connectOptions with those numbers of gateways of the local and the remote cluster, and with
// Update.
func gatewayOptions(a, b *fakecluster.Cluster, local, remote int) ConnectOptions {
	o := connectOptions(a, b)
	o.Local.Gateways, o.Remote.Gateways, o.Update = local, remote, true
	return o
}

// checkGateways checks all objects of gateways: a is the client, b the server.
func checkGateways(t *testing.T, a, b *fakecluster.Cluster, local, remote int) {
	t.Helper()
	client, server := a.Peering(t), b.Peering(t)
	seen := make(map[string]bool)
	once := func(what string, value any) {
		t.Helper()
		if key := fmt.Sprint(what, " ", value); seen[key] {
			t.Errorf("two have %s", key)
		} else {
			seen[key] = true
		}
	}
	checkCluster(t, a, client, local, remote, once)
	checkCluster(t, b, server, remote, local, once)
	for i := range remote {
		for j := range local {
			s, ok1 := server.Tunnel(i+1, j+1)
			c, ok2 := client.Tunnel(j+1, i+1)
			if !ok1 || !ok2 {
				t.Fatalf("no tunnel of gateways %d and %d", i+1, j+1)
			}
			k := 8*i + j
			want := netip.MustParsePrefix(fmt.Sprintf("169.254.18.%d/30", 4*k+1))
			ofServer, seesClient := server.TunnelAddresses(i+1, j+1)
			ofClient, seesServer := client.TunnelAddresses(j+1, i+1)
			if ofServer != want || seesServer != want.Addr() || ofClient.Addr() != want.Addr().Next() || seesClient != ofClient.Addr() {
				t.Errorf("tunnel %d-%d: %s, %s", i+1, j+1, ofServer, ofClient)
			}
			if int(s.ListenPort) != 51840+j || c.ListenPort != s.ListenPort {
				t.Errorf("tunnel %d-%d: ports %d, %d", i+1, j+1, s.ListenPort, c.ListenPort)
			}
			first := (i + j) % 2 // each tunnel has another node first
			wanted := []string{fmt.Sprintf("172.31.2.%d:%d", 11+first, 30840+k), fmt.Sprintf("172.31.2.%d:%d", 12-first, 30840+k)}
			if !slices.Equal(c.Endpoints, wanted) {
				t.Errorf("tunnel %d-%d: endpoints %v, want %v", i+1, j+1, c.Endpoints, wanted)
			}
			if acceptedKey(t, s) != publicKey(t, a, "b", j+1) || acceptedKey(t, c) != publicKey(t, b, "a", i+1) {
				t.Errorf("tunnel %d-%d: public keys are not those of the gateways", i+1, j+1)
			}
		}
	}
}

// acceptedKey returns the public key that a record has for a tunnel.
func acceptedKey(t *testing.T, tunnel records.Tunnel) string {
	t.Helper()
	return tunnel.Driver.WireGuard.PublicKey
}

// publicKey returns that of a gateway, from its Secret.
func publicKey(t *testing.T, w *fakecluster.Cluster, peering string, number int) string {
	t.Helper()
	k, err := inventory.ReadKeys(t.Context(), w.Cluster, records.GatewayID{Peering: peering, Number: number})
	if err != nil || k == nil {
		t.Fatalf("keys of gateway %d of cluster %s: %v", number, w.Context, err)
	}
	return k.Public()
}

// checkCluster checks the objects of one cluster's gateways: none is missing, and none of other gateways remains.
func checkCluster(t *testing.T, w *fakecluster.Cluster, p records.Peering, gateways, tunnels int, once func(string, any)) {
	t.Helper()
	if len(p.Gateways) != gateways || len(p.Gateways[0].Tunnels) != tunnels {
		t.Fatalf("cluster %s: %d gateways with %d tunnels, want %d and %d", w.Context, len(p.Gateways), len(p.Gateways[0].Tunnels), gateways, tunnels)
	}
	var want, have []string
	for _, id := range p.GatewayIDs() {
		want = append(want, "*v1.Deployment "+id.Name(), "*v1.ServiceAccount "+id.Name(), "*v1.Role "+id.Name(), "*v1.RoleBinding "+id.Name(),
			"*v1.ConfigMap "+id.Name(), "*v1.ConfigMap "+id.StatusName(), "*v1.Secret "+id.KeysName())
		once("public key", publicKey(t, w, p.Name, id.Number))
	}
	want = append(want, "*v1.ConfigMap "+records.PeeringName(p.Name))
	if p.Role == records.Server {
		want = append(want, "*v1.Service "+records.ServiceName(p.Name))
	}
	if gateways > 1 {
		want = append(want, "*v1.PodDisruptionBudget "+records.ServiceName(p.Name))
	}
	objects, err := w.List(t.Context(), inventory.PeeringSelector(p.Name))
	require.NoError(t, err)
	for _, o := range objects {
		have = append(have, fmt.Sprintf("%T %s", o, o.GetName()))
	}
	slices.Sort(want)
	slices.Sort(have)
	assert.Equal(t, "objects of cluster "+w.Context, want, have)
	registry, err := inventory.Reservations(t.Context(), w.Cluster)
	require.NoError(t, err)
	var held []string
	for _, r := range registry.Held(ipam.Peering(p.Name), ipam.Gateways) {
		held = append(held, r.Range.String())
	}
	assert.Equal(t, "reserved addresses of gateways of cluster "+w.Context, []string{"10.80.128.8/29"}, held)
	if p.Number != 1 {
		t.Errorf("cluster %s: number %d", w.Context, p.Number)
	}
}

// TestSeveralGateways: each gateway of one cluster has a tunnel to each of the other.
func TestSeveralGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := gatewayOptions(a, b, 2, 3)
		o.Update, o.GatewayMode = false, new(records.ActiveStandby)
		got := fakecluster.Must(t, Connect, o)
		if len(got.Local.OtherGateways) != 1 || len(got.Remote.OtherGateways) != 2 || len(got.Remote.OtherGateways[1].Proof.Nodes) != 2 {
			t.Errorf("result %+v", got)
		}
		checkGateways(t, a, b, 2, 3)
		before := fakecluster.Contents(t, a.Cluster)
		for _, o := range []ConnectOptions{o, unchangedOptions(a, b)} { // without the flags nothing changes
			changesNothing(t, o)
		}
		assert.Equal(t, "objects after a second connect", before, fakecluster.Contents(t, a.Cluster))
		for _, w := range []*fakecluster.Cluster{a, b} {
			if mode := *w.Peering(t).Settings.Complete().GatewayMode; mode != records.ActiveStandby {
				t.Errorf("mode %q", mode)
			}
			all, err := status.Read(t.Context(), status.Options{Cluster: w.Cluster})
			if err != nil || len(all) != 1 || all[0].State != health.Healthy {
				t.Fatalf("status %+v, %v", all, err)
			}
			tunnels := 0
			for _, g := range all[0].Gateways {
				tunnels += len(g.Tunnels)
			}
			if tunnels != 6 {
				t.Errorf("%d tunnels in %+v", tunnels, all[0])
			}
		}
		fakecluster.Must(t, removal.Disconnect, removal.DisconnectOptions{Local: a.Cluster, Remote: b.Cluster, Timeout: time.Minute})
		fakecluster.ExpectNoTraces(t, a, b)
	})
}

// TestScaling: gateways are added before the records contain them, and drained before the records omit them.
func TestScaling(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := connected(t)
		o := gatewayOptions(a, b, 2, 2)
		o.Update = false
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if _, differs := errors.AsType[*plan.DifferenceError](err); !differs {
			t.Fatalf("without consent: %v", err)
		}
		checkGateways(t, a, b, 1, 1)
		for _, count := range [][2]int{{2, 2}, {3, 1}, {3, 3}, {1, 2}, {1, 1}} {
			a.Fake.ClearActions()
			if _, err := Connect(t.Context(), gatewayOptions(a, b, count[0], count[1]), &fakecluster.Recorder{}); err != nil {
				t.Fatalf("%v: %v", count, err)
			}
			checkGateways(t, a, b, count[0], count[1])
			checkOrder(t, a.Fake.Actions())
		}
	})
}

// checkOrder rejects a gateway that is created after the record contains it, or deleted after the record omits it.
// Objects that it reads are deleted later.
func checkOrder(t *testing.T, actions []clienttesting.Action) {
	t.Helper()
	recorded := false
	for _, action := range actions {
		write, ok := action.(clienttesting.PatchActionImpl)
		switch {
		case ok && len(write.PatchOptions.DryRun) > 0:
		case ok && write.Name == records.PeeringName("b"), action.Matches("update", "configmaps") && updates(action, records.PeeringName("b")):
			recorded = true
		case ok && recorded && strings.HasPrefix(write.Name, "gateway") && action.GetResource().Resource == "deployments":
			t.Errorf("%s comes after the record", write.Name)
		case action.Matches("delete", "deployments") && recorded:
			t.Errorf("%s ends after the record", action.(clienttesting.DeleteAction).GetName())
		case action.GetVerb() == "delete" && !action.Matches("delete", "deployments") && !recorded:
			t.Errorf("%s goes before the record", action.(clienttesting.DeleteAction).GetName())
		}
	}
	if !recorded {
		t.Error("the record is not written")
	}
}

func updates(action clienttesting.Action, name string) bool {
	o, ok := action.(clienttesting.UpdateAction).GetObject().(metav1.Object)
	return ok && o.GetName() == name
}

// TestInterruptedScaling: scaling up and down can be killed at any write and run again. The test tries eight writes.
func TestInterruptedScaling(t *testing.T) {
	t.Parallel()
	type step struct{ from, to int }
	for _, s := range []step{{1, 2}, {2, 1}} {
		total := 0
		for n := 0; n <= total; n += 1 + total/8 { // 0 only counts writes
			bubble.Run(t, fmt.Sprintf("%d to %d, write%02d", s.from, s.to, n), func(t *testing.T) {
				a, b := fakecluster.RunPair(t)
				fakecluster.Must(t, Connect, gatewayOptions(a, b, s.from, s.from))
				o := gatewayOptions(a, b, s.to, s.to)
				total = max(total, killedAt(t, n, a, b, doing(Connect, o)))
				fakecluster.Must(t, Connect, o)
				checkGateways(t, a, b, s.to, s.to)
			})
		}
		if total < 10 {
			t.Errorf("only %d writes seen", total)
		}
	}
}

// TestPortsOfTunnels: first ports from which tunnels would exceed the maximum are rejected before anything is changed.
func TestPortsOfTunnels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := gatewayOptions(a, b, 2, 2)
		o.EndpointPort = new(uint16(65530))
		_, err := Connect(t.Context(), o, &fakecluster.Recorder{})
		if _, refused := errors.AsType[*progress.InputError](err); !refused || !strings.Contains(err.Error(), "--gw-client-port: port 65539") {
			t.Errorf("error %v", err)
		}
		fakecluster.ExpectNothingLeft(t, a)
	})
}

// TestReplacedInTurn: an update of several gateways, in both clusters, replaces one after the previous one carries
// packets again.
func TestReplacedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := fakecluster.RunPair(t)
		o := gatewayOptions(a, b, 3, 2)
		fakecluster.Must(t, Connect, o)
		var mu sync.Mutex
		var order []string
		for _, w := range []*fakecluster.Cluster{a, b} {
			w.Fake.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				write := action.(clienttesting.PatchActionImpl)
				event := w.Context + " " + write.Name
				mu.Lock()
				defer mu.Unlock()
				switch {
				case len(write.PatchOptions.DryRun) > 0 || action.GetSubresource() != "":
				case action.GetResource().Resource == "deployments":
					order = append(order, event)
				case strings.HasPrefix(write.Name, "status") && len(order) > 0 && order[len(order)-1] != event:
					order = append(order, event)
				}
				return false, nil, nil
			})
		}
		o.Image = "liqonet:2"
		fakecluster.Must(t, Connect, o)
		mu.Lock()
		defer mu.Unlock()
		before, replaced := "", 0 // the status of the gateway that was replaced last
		for _, event := range order {
			switch name, is := strings.CutPrefix(event[strings.Index(event, " ")+1:], "gateway"); {
			case event == before:
				before = ""
			case is && before != "":
				t.Fatalf("%s comes before %s in %q", event, before, order)
			case is:
				before, replaced = event[:strings.Index(event, " ")]+" status"+name, replaced+1
			}
		}
		if replaced != 5 {
			t.Errorf("%d gateways are replaced: %q", replaced, order)
		}
	})
}

// slowly is the interval of helpers in tests with long waits.
const slowly = 3 * time.Second

// TestStayingGatewaysCarry: no gateway is removed before the remaining ones carry packets, and none at all if they
// never do.
func TestStayingGatewaysCarry(t *testing.T) {
	for _, after := range []time.Duration{0, 5 * time.Second, time.Hour} {
		bubble.Run(t, after.String(), func(t *testing.T) {
			a, b := fakecluster.RunPair(t)
			fakecluster.Must(t, Connect, gatewayOptions(a, b, 2, 2))
			a.Set(func() { a.NotReportingGateway, a.Interval = fakecluster.FirstGateway("b"), slowly })
			b.Set(func() { b.Interval = slowly })
			time.Sleep(health.Life(health.ReportEvery)) //nolint:forbidigo // synctest's clock
			begin := time.Now()
			defer time.AfterFunc(after, func() { a.Set(func() { a.NotReportingGateway = records.GatewayID{} }) }).Stop()
			var ended []time.Duration
			for _, w := range []*fakecluster.Cluster{a, b} {
				w.Fake.PrependReactor("delete", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					ended = append(ended, time.Since(begin))
					return false, nil, nil
				})
			}
			_, err := Connect(t.Context(), gatewayOptions(a, b, 1, 1), &fakecluster.Recorder{})
			switch {
			case after < time.Hour && err != nil:
				t.Fatal(err)
			case after < time.Hour && (len(ended) != 2 || ended[0] < after):
				t.Errorf("gateways end after %v, though the first one carries packets from %s on", ended, after)
			case after == time.Hour && (err == nil || !strings.Contains(err.Error(), "no packets cross by the gateways that would stay") || len(ended) > 0):
				t.Errorf("gateways end after %v, error %v", ended, err)
			}
		})
	}
}
