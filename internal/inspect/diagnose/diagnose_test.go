package diagnose

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
)

// TestTable checks that IDs are unique and contain their layer, that layers are in order, and that each check comes
// after those that explain it.
func TestTable(t *testing.T) {
	var seen []string
	layer := 0
	for _, c := range Table() {
		if slices.Contains(seen, c.ID) || !regexp.MustCompile(`^LQ(-[A-Z]+){2}$`).MatchString(c.ID) {
			t.Errorf("ID %s", c.ID)
		}
		if c.cluster != nil && c.side != nil || c.What == "" || c.Cause == "" || c.Fix == "" {
			t.Errorf("%s is not complete", c.ID)
		}
		for _, n := range c.Needs {
			if !slices.Contains(seen, n) {
				t.Errorf("%s needs %s, which is not before it", c.ID, n)
			}
		}
		if i := slices.Index(Layers(), LayerOf(c.ID)); i < layer {
			t.Errorf("%s: layer %s comes too late, or is none", c.ID, LayerOf(c.ID))
		} else {
			layer = i
		}
		seen = append(seen, c.ID)
	}
}

// TestPages checks that docs/checks has exactly one page for each check.
func TestPages(t *testing.T) {
	const folder = "../../../docs/checks"
	var index strings.Builder
	index.WriteString("# Checks\n\nThe checks of `liqoctl network diagnose`, in order of dependency. In commands, CONTEXT and REMOTE " +
		"stand for the kube contexts of the cluster and of the other one, NAMESPACE for that of liqonet, and PEER for the name of the peering; the command " +
		"fills them in.\n\n| check | layer | checks |\n|---|---|---|\n")
	pages := []string{"README.md"}
	for _, c := range Table() {
		golden.File(t, filepath.Join(folder, c.ID+".md"), c.Page())
		index.WriteString("| [" + c.ID + "](" + c.ID + ".md) | " + string(LayerOf(c.ID)) + " | " + c.What + " |\n")
		pages = append(pages, c.ID+".md")
	}
	golden.File(t, filepath.Join(folder, "README.md"), index.String())
	there, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, page := range there {
		if !slices.Contains(pages, page.Name()) {
			golden.Gone(t, filepath.Join(folder, page.Name()))
		}
	}
}

// runCheck runs one check of the table for a side.
func runCheck(t *testing.T, id string, s *side) Finding {
	t.Helper()
	for _, c := range Table() {
		if c.ID == id {
			return c.finding(s, c.outcome(s))
		}
	}
	t.Fatalf("no check %s", id)
	return Finding{}
}

func sideOf(name string) *side {
	f := &facts{Snapshot: &observe.Snapshot{Context: name, Namespace: "liqonet", Errors: map[fact]error{}}, name: name}
	return &side{facts: f, status: status.Peering{Cluster: name, Peer: "b", State: health.Healthy}}
}

// TestClocks compares the time in a gateway's report with the time at which the API server stored it.
func TestClocks(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for off, want := range map[time.Duration]State{0: Passed, -30 * time.Second: Passed, 2 * time.Minute: Warning, -time.Hour: Warning} {
		s := sideOf("a")
		s.Statuses = map[records.GatewayID]*records.Status{{Peering: "b", Number: 1}: {Time: now.Add(off), Pod: "gateway-0"}}
		field := func(at time.Time, fields string, by metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
			return metav1.ManagedFieldsEntry{Operation: by, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(fields)}
		}
		s.ConfigMaps = map[string]*corev1.ConfigMap{"status-b": {
			ObjectMeta: metav1.ObjectMeta{Name: "status-b", ManagedFields: []metav1.ManagedFieldsEntry{
				field(now, `{"f:data":{"f:record":{}}}`, metav1.ManagedFieldsOperationUpdate),
				field(now.Add(time.Hour), `{"f:metadata":{"f:labels":{}}}`, metav1.ManagedFieldsOperationUpdate),
				field(now.Add(time.Hour), `{"f:data":{}}`, metav1.ManagedFieldsOperationApply),
			}},
		}}
		if got := runCheck(t, "LQ-API-CLOCK", s); got.State != want {
			t.Errorf("%s off: %+v, want %s", off, got, want)
		}
	}
}

// TestProbes checks that the results of a side's probe packets decide the checks of paths.
func TestProbes(t *testing.T) {
	at := func(cluster string, name probe.Check, state pathtest.State) pathtest.Check {
		return pathtest.Check{From: pathtest.End{Cluster: cluster, Kind: pathtest.Pod, Node: "n"}, Name: name, State: state, Seen: "nothing", Expected: "an answer"}
	}
	for _, c := range []struct {
		paths           []pathtest.Check
		packets, source State
	}{
		{[]pathtest.Check{at("a", probe.TCP, pathtest.Passed), at("b", probe.TCP, pathtest.Failed)}, Passed, Passed},
		{[]pathtest.Check{at("a", probe.TCP, pathtest.Failed)}, Failed, Passed},
		{[]pathtest.Check{at("a", "source", pathtest.Failed)}, Passed, Failed},
	} {
		s := sideOf("a")
		s.paths = c.paths
		if got := runCheck(t, "LQ-PATH-PACKETS", s); got.State != c.packets {
			t.Errorf("%+v: %+v", c.paths, got)
		}
		if got := runCheck(t, "LQ-PATH-SOURCE", s); got.State != c.source {
			t.Errorf("%+v: %+v", c.paths, got)
		}
		s.Errors[packets] = errNoProbe
		if got := runCheck(t, "LQ-PATH-SOURCE", s); got.State != Skipped || got.Observed == "" {
			t.Errorf("without packets: %+v", got)
		}
	}
}

// TestStatusIsNeverContradicted checks that each finding that changes the state of a peering fails the check of its
// code, even if all else passes or could not be read, and that there is a check for each code.
func TestStatusIsNeverContradicted(t *testing.T) {
	for _, kind := range slices.Concat(health.Kinds(), status.Kinds()) {
		code, s := kind.Code, sideOf("a")
		s.Errors[peerings], s.reports = nil, []*records.Status{{}}
		s.status.Findings = []health.Finding{health.OfObject(code, "the cable is cut")}
		s.peerings = []status.Peering{s.status}
		if got := runCheck(t, string(code), s); got.State != Failed || !strings.Contains(got.Observed, "the cable is cut") {
			t.Errorf("%+v", got)
		}
		for _, part := range slices.DeleteFunc(observe.Parts(), func(p observe.Part) bool { return slices.Contains(status.Parts(), p) && p != observe.Leases }) {
			s.Errors[part] = kube.ErrUnreadable
		}
		if got := runCheck(t, string(code), s); got.State != Failed || !strings.Contains(got.Observed, "the cable is cut") {
			t.Errorf("nothing but status is read: %+v", got)
		}
	}
}

// TestDamagedKeys checks that keys which do not decode are not called other keys: LQ-OBJECTS-KEYS names the Secret.
func TestDamagedKeys(t *testing.T) {
	other := records.Driver{WireGuard: wireguard.Peer{PublicKey: "of the other"}}
	ids, tunnels := records.GatewayIDs("b", 1), []records.LocalGateway{{Tunnels: []records.Tunnel{{Driver: other}}}}
	for name, damaged := range map[string]func(own, peer *side){
		"here": func(own, _ *side) { own.Keys[ids[0].KeysName()] = observe.Key{Err: kube.ErrUnreadable} },
		"there": func(_, peer *side) {
			peer.Keys[records.GatewayID{Peering: "a", Number: 1}.KeysName()] = observe.Key{Err: kube.ErrUnreadable}
		},
	} {
		own, peer := sideOf("a"), sideOf("b")
		own.peer, peer.status.Peer = peer, "a"
		own.record, peer.record = &records.Peering{Name: "b", Gateways: tunnels}, &records.Peering{Name: "a", Gateways: tunnels}
		own.Keys = map[string]observe.Key{ids[0].KeysName(): {Driver: other, Preshared: "x"}}
		peer.Keys = map[string]observe.Key{records.GatewayID{Peering: "a", Number: 1}.KeysName(): {Driver: other, Preshared: "x"}}
		damaged(own, peer)
		if got := runCheck(t, "LQ-TUNNEL-KEYS", own); got.State != Passed {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTunnelName checks that the remedy lists all endpoints, as the client tries them in turn even after one answered.
func TestTunnelName(t *testing.T) {
	s := sideOf("a")
	s.record = &records.Peering{Gateways: []records.LocalGateway{{Tunnels: []records.Tunnel{
		{Endpoints: []string{"192.0.2.1:30840", "192.0.2.2:30840"}}, {Endpoints: []string{"192.0.2.1:30841"}},
	}}}}
	for peer, want := range []string{
		"tunnels of gateway 1 to 192.0.2.1:30840, 192.0.2.2:30840, 192.0.2.1:30841",
		"tunnel 1-1 to 192.0.2.1:30840, 192.0.2.2:30840",
		"tunnel 1-2 to 192.0.2.1:30841",
	} {
		if got := s.tunnelName(1, peer); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLostPackets checks that the finding names the node that all lost packets have in common.
func TestLostPackets(t *testing.T) {
	end := func(cluster string, kind pathtest.Kind, node string) pathtest.End {
		return pathtest.End{Cluster: cluster, Kind: kind, Node: node}
	}
	one, two, far, farther := end("a", pathtest.Pod, "a1"), end("a", pathtest.Pod, "a2"), end("b", pathtest.Pod, "b1"), end("b", pathtest.Pod, "b2")
	for _, c := range []struct {
		lost [][2]pathtest.End
		want string
	}{
		{[][2]pathtest.End{{one, far}, {one, farther}}, "; all 2 failures are from pod on a1 of a"},
		{[][2]pathtest.End{{one, far}, {end("a", pathtest.Node, "a1"), farther}}, "; all 2 failures are from node a1"},
		{[][2]pathtest.End{{one, far}, {two, far}}, "; all 2 failures are to node b1"},
		{[][2]pathtest.End{{one, far}, {two, farther}}, "expected an answer"},
		{[][2]pathtest.End{{one, far}}, "expected an answer"},
	} {
		s := sideOf("a")
		for _, l := range c.lost {
			s.paths = append(s.paths, pathtest.Check{From: l[0], To: l[1], Name: probe.UDP, State: pathtest.Failed, Expected: "an answer"})
		}
		if got := runCheck(t, "LQ-PATH-PACKETS", s); !strings.HasSuffix(got.Observed, c.want) {
			t.Errorf("%q, want it to end with %q", got.Observed, c.want)
		}
	}
}

func TestJUnit(t *testing.T) {
	r := Result{Checks: []Finding{
		{ID: "LQ-A", Layer: API, Cluster: "a", State: Failed, Observed: "no answer"}, {ID: "LQ-B", Layer: Path, Cluster: "a", State: Following, Follows: "LQ-A"},
		{ID: "LQ-C", Layer: Path, Cluster: "a", State: Warning}, {ID: "LQ-D", Layer: Path, Cluster: "a", State: Passed},
	}}
	text, err := r.JUnit()
	var report struct {
		Suites []struct {
			Name     string `xml:"name,attr"`
			Tests    int    `xml:"tests,attr"`
			Failures int    `xml:"failures,attr"`
			Skipped  int    `xml:"skipped,attr"`
		} `xml:"testsuite"`
	}
	if err != nil || xml.Unmarshal(text, &report) != nil || len(report.Suites) != len(Layers()) {
		t.Fatalf("%v\n%s", err, text)
	}
	if first, path := report.Suites[0], report.Suites[8]; first.Failures != 1 || path.Tests != 3 || path.Skipped != 1 || path.Failures != 0 {
		t.Errorf("%s", text)
	}
}
