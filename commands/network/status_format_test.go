package network

import (
	"regexp"
	"strings"
	"testing"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestUnknownIsAbsent: values that no gateway reported are absent in structured output, neither -1 nor 0.
func TestUnknownIsAbsent(t *testing.T) {
	out, _ := statusOf(t, peerings()[1:], "-o", "json")
	for _, name := range []string{"handshakeAge", "rtt", "reportAge", "loss", "rxBytes", "txBytes", "-1"} {
		if strings.Contains(out, name) {
			t.Errorf("%s stands in %s", name, out)
		}
	}
	out, _ = statusOf(t, peerings()[:1], "-o", "jsonpath={.peerings[0].gateways[0].tunnels[0].loss} {.peerings[0].gateways[0].tunnels[0].handshakeAgeSeconds}")
	if out != "0 12" {
		t.Errorf("what is known: %q", out)
	}
}

// TestStateInColour: colours do not change the names of states nor move columns.
func TestStateInColour(t *testing.T) {
	var plain, coloured strings.Builder
	for out, o := range map[*strings.Builder]statusOptions{&plain: {Options: here(), output: ui.FormatText}, &coloured: {Options: here(), output: ui.FormatText, coloured: true}} {
		require.NoError(t, o.print(out, statusAnswer{Peerings: peerings()}))
	}
	if got := regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(coloured.String(), ""); got != plain.String() {
		t.Errorf("without its colours it reads\n%s\nwant\n%s", got, plain.String())
	}
	if !strings.Contains(coloured.String(), "\x1b[32mhealthy\x1b[0m") || strings.Contains(plain.String(), "\x1b") {
		t.Errorf("got %q and %q", coloured.String(), plain.String())
	}
	hostile := peerings()[:1]
	hostile[0].State = hostileState
	coloured.Reset()
	o := statusOptions{Options: here(), output: ui.FormatText, coloured: true}
	if err := o.print(&coloured, statusAnswer{Peerings: hostile}); err != nil || strings.Contains(coloured.String(), hostileState) {
		t.Errorf("%v, a state passes as a colour: %q", err, coloured.String())
	}
}

const hostileState = "\x1b[41mhealthy"

// here are the options of one cluster.
func here() status.Options {
	return status.Options{Cluster: &kube.Cluster{Context: "a", Namespace: records.DefaultNamespace}}
}
