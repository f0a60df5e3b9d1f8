package commands

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/graph"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/status"
)

// drawn is what `network graph` prints of the peerings of TestStatus, the first of which has a gateway.
func drawn(t *testing.T, env *Env, args ...string) (string, error) {
	t.Helper()
	var b strings.Builder
	all := peerings()
	rtt := 600 * time.Microsecond
	all[0].Cluster, all[1].Cluster = "a", "a"
	all[0].Gateways = []status.Gateway{{Number: 1, State: health.Healthy, Pod: "gateway-b-x", Node: "n1", Tunnels: []status.Tunnel{
		{Gateway: 1, State: health.Healthy, RTT: &rtt, RxBytes: 1536},
	}}}
	err := parse(t, func(made *Env, local *clusterFlags) *cobra.Command {
		made.Out, made.OutTerminal, made.Environ = &b, env.OutTerminal, env.Environ
		return newNetworkGraph(made, local, func(_ context.Context, o status.Options) ([]status.Peering, error) {
			if o.Peer == "absent" {
				return nil, errAsked
			}
			if o.Peer == "none" {
				return nil, nil
			}
			return all, nil
		})
	}, args...)
	return b.String(), err
}

func TestGraph(t *testing.T) {
	out, err := drawn(t, &Env{})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "graph", out)
	for output, begins := range map[string]string{"mermaid": "flowchart", "DOT": "graph liqonet {", "svg": "<svg ", "html": "<!doctype html>"} {
		if out, err := drawn(t, &Env{}, "-o", output); err != nil || !strings.HasPrefix(out, begins) {
			t.Errorf("%s: %v\n%s", output, err, out)
		}
	}
	out, err = drawn(t, &Env{}, "-o", "json")
	var g graph.Graph
	if decoding := json.Unmarshal([]byte(out), &g); err != nil || decoding != nil || len(g.Clusters) != 3 || g.Tunnels[0].Views[0].RxBytes != 1536 {
		t.Errorf("%v, %v: %s", err, decoding, out)
	}
	if out, err := drawn(t, &Env{}, "-o", "jsonpath={.clusters[0].name}"); err != nil || out != "a" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := drawn(t, &Env{}, "none"); err != nil || out != "no peerings\n" {
		t.Errorf("%q, %v", out, err)
	}
	for _, args := range [][]string{{"-o", "png"}, {"absent"}} {
		if _, err := drawn(t, &Env{}, args...); err == nil {
			t.Errorf("%v is taken", args)
		}
	}
	if _, err := drawn(t, &Env{}, "absent"); !errors.Is(err, errAsked) {
		t.Errorf("error %v", err)
	}
}

// Colours are for terminals whose users want them.
func TestGraphInColour(t *testing.T) {
	for _, c := range []struct {
		env  Env
		want bool
	}{{Env{OutTerminal: true}, true}, {Env{}, false}, {Env{OutTerminal: true, Environ: []string{"NO_COLOR=1"}}, false}} {
		if out, _ := drawn(t, &c.env); strings.Contains(out, "\x1b[") != c.want {
			t.Errorf("%+v: %q", c.env, out)
		}
	}
}
