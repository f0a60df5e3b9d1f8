package network

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/testbed/golden"
)

// TestTopologies: a mesh has each pair once, a hub itself with each other. The later context is the remote cluster.
func TestTopologies(t *testing.T) {
	f := manyFlags{contexts: []string{"a", "b", "c"}}
	for hub, want := range map[string][][2]int{
		"": {{0, 1}, {0, 2}, {1, 2}}, "a": {{0, 1}, {0, 2}}, "b": {{0, 1}, {1, 2}}, "c": {{0, 2}, {1, 2}},
	} {
		f.hub = hub
		if got, err := f.pairs(); err != nil || !slices.Equal(got, want) {
			t.Errorf("hub %q: %v, %v; want %v", hub, got, err, want)
		}
	}
	for text, want := range map[string]string{"mesh": "", "hub=a": "a"} {
		if got, err := readTopology(text); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// TestConnectManyRefuses: flags of one of two clusters, and topologies that do not exist, are usage errors.
func TestConnectManyRefuses(t *testing.T) {
	for _, line := range []string{
		"--contexts a", "--contexts a,a", "--contexts a --contexts a", "--contexts a,", "--contexts a,b --topology ring", "--contexts a,b --topology hub=",
		"--contexts a,b --topology hub=c", "--contexts a,b --context a", "--contexts a,b --remote-gateways 2", "--contexts a,b --name x",
		"--contexts a,b --pod-cidr 10.0.0.0/8", "--contexts a,b --parallel 0", "--contexts a,absent",
	} {
		_, err := optionsOf(t, newConnect, strings.Fields(line)...)
		if !errors.As(err, new(*cli.UsageError)) && !strings.Contains(err.Error(), "invalid argument") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestDescribeConnections(t *testing.T) {
	unchanged, connected, lacks := connection(), connection(), lacking()
	unchanged.Changed = false
	r := peering.Connections{Took: connected.Took, Installations: []peering.Installed{{Context: "eu-1"}, {Context: "us-2", Changed: true}, {Context: "ap-1", Error: "no rights"}}, Peerings: []peering.PairResult{
		{Local: "eu-1", Remote: "eu-2", Result: &connected}, {Local: "eu-1", Remote: "us-1", Result: &unchanged},
		{Local: "eu-1", Remote: "us-2", Result: &lacks}, {Local: "eu-1", Remote: "ap-1", Error: "verify: no handshake", Hint: "allow UDP"},
	}}
	golden.Check(t, "connect-many.golden", described(describeConnections, r))
	for n, want := range map[int]error{1: nil, 2: nil, 3: cli.ErrUnverified} {
		if got := verdictOnMany(peering.Connections{Peerings: r.Peerings[:n]}); !errors.Is(got, want) {
			t.Errorf("%d peerings: %v", n, got)
		}
	}
	if err := verdictOnMany(r); cli.ExitCode(t.Context(), err) != cli.ExitFailure {
		t.Errorf("a failed peering: %v", err)
	}
}
