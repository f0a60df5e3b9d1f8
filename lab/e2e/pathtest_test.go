package e2e

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pathResult has the fields of `network test -o json` that tests use.
type pathResult struct {
	Passed bool
	Checks []pathCheck
}

type pathCheck struct {
	From, To              struct{ Cluster, Kind, Node string }
	Check                 string
	State, Seen, Expected string
	GapSeconds            float64
}

// String is a line of a report.
func (c pathCheck) String() string {
	return fmt.Sprintf("%s of %s %s in %s to %s %s in %s: %s, want %s", c.Check, c.From.Kind, c.From.Node, c.From.Cluster, c.To.Kind, c.To.Node, c.To.Cluster, c.Seen, c.Expected)
}

// report lists failed checks, a few of them.
func (r pathResult) report() string {
	const most = 10
	failed := r.failed()
	text := fmt.Sprintf("%d of %d checks failed", len(failed), len(r.Checks))
	for _, c := range failed[:min(len(failed), most)] {
		text += "\n" + c.String()
	}
	return text
}

func (r pathResult) failed() (failed []pathCheck) {
	for _, c := range r.Checks {
		if c.State == "failed" {
			failed = append(failed, c)
		}
	}
	return failed
}

// testPaths tests the paths of the peering of a and b: all checks pass, and nothing is left, also of a test that ends
// early. In the long form, large packets that are lost between the clusters are seen.
func testPaths(ctx context.Context, t *testing.T, u users) {
	report := filepath.Join(t.TempDir(), "paths.xml")
	args := []string{"network", "test", "b", "--context", "a", "--remote-context", "b", "-o", "json", "--junit", report, "--timeout", "10m"}
	// A check gives up after fifteen seconds: on a busy machine, kube-proxy may take longer for the Service of a test.
	const attempts = 5
	test := func(t *testing.T, want int, more ...string) (r pathResult) {
		t.Helper()
		for attempt := 1; ; attempt++ {
			out, said, code := u.installer.run(ctx, t, append(args, more...)...)
			r = pathResult{}
			err := json.Unmarshal([]byte(out), &r)
			if code == want && (want == 1 || err == nil) {
				break
			}
			report := fmt.Sprintf("exit code %d, want %d; %v\n%s\n%s", code, want, err, r.report(), said)
			if attempt == attempts {
				t.Fatal(report)
			}
			t.Log(report)
		}
		for _, cluster := range []string{"a", "b"} {
			if left := kubectl(ctx, t, u.admin.lab, cluster, "-n", "liqonet", "get", "daemonsets,pods,services,endpointslices", "-o", "name"); strings.Contains(left, "/test-") {
				t.Errorf("left in %s:\n%s", cluster, left)
			}
		}
		return r
	}
	test(t, 1, "--timeout", "1s") // over before pods run
	made := map[string]int{}
	for _, c := range test(t, 0, "--duration", "1s").Checks {
		if c.State != "passed" && c.Check != "ping" { // a node decides who may ping
			t.Errorf("%+v", c)
		}
		made[c.From.Kind+" "+c.To.Kind+" "+c.Check]++
	}
	for path, want := range map[string]int{
		"pod pod tcp": 8, "pod pod source": 8, "pod pod connection": 8, "node pod full-size": 8, "node pod oversize": 8, "node pod fragments": 8,
		"pod ClusterIP tcp": 4, "node ClusterIP source": 4, "node NodePort source": 4,
	} {
		if made[path] != want {
			t.Errorf("%d checks %q, want %d", made[path], path, want)
		}
	}
	if testing.Short() {
		return
	}
	router := func(command string) {
		t.Helper()
		if _, err := u.admin.lab.NodeExec(ctx, "router", "nft", command); err != nil {
			t.Fatal(err)
		}
	}
	router(tunnelFault + "ip length > 1300 drop")
	failed, largeAlone := map[string]int{}, false
	for range attempts {
		clear(failed)
		for _, c := range test(t, 3, "--nodes", "1").failed() {
			failed[c.From.Cluster+" "+c.Check]++
		}
		if largeAlone = failed["a full-size"] == 2 && failed["b full-size"] == 2 && failed["a udp"]+failed["b udp"] == 0; largeAlone {
			break
		}
	}
	router("delete table ip fault")
	if !largeAlone {
		t.Errorf("large packets are lost between the clusters: failed checks %v", failed)
	}
	text, err := os.ReadFile(report)
	var junit struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err != nil || xml.Unmarshal(text, &junit) != nil || len(junit.Suites) != 2 || junit.Suites[0].Failures == 0 || junit.Suites[1].Failures == 0 {
		t.Errorf("%v, JUnit report:\n%s", err, text)
	}
	awaitHealthy(ctx, t, u.looker, 2)
}
