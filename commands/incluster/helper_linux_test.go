package incluster

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// environment is what the helpers' manifests set.
func environment(t *testing.T, variables map[string]string) *cli.Env {
	t.Helper()
	env := &cli.Env{Err: io.Discard}
	for name, value := range variables {
		env.Environ = append(env.Environ, name+"="+value)
	}
	env.Start()
	return env
}

func TestFirstIPv4(t *testing.T) {
	for text, want := range map[string]string{
		"10.244.0.7": "10.244.0.7", "10.244.0.7,fd00::7": "10.244.0.7", "fd00::7,10.244.0.7": "10.244.0.7", "fd00::7": "", "x": "", "": "",
	} {
		a, err := firstIPv4(text)
		if (err != nil) != (want == "") || err == nil && a != netip.MustParseAddr(want) {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
}

func TestHelperGatewayOptions(t *testing.T) {
	env := environment(t, map[string]string{
		"NAMESPACE": "liqonet", "NODE_NAME": "a-1", "POD_NAME": "gateway-b-x", "POD_IP": "10.244.0.7", "PEERING": "other",
	})
	g, err := gatewayOptions(env, records.GatewayID{Peering: "b"})
	require.NoError(t, err)
	if g.Namespace != "liqonet" || g.Node != "a-1" || g.Pod != "gateway-b-x" || g.PodIP != netip.MustParseAddr("10.244.0.7") ||
		g.ID != (records.GatewayID{Peering: "b", Number: 1}) || g.Keys != "/etc/liqonet/keys" || g.HealthAddress != ":6093" {
		t.Errorf("options %+v", g)
	}
	if !g.Log.Enabled(t.Context(), slog.LevelInfo) || g.Log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("a helper logs information, and not each detail")
	}
	for text, want := range map[string]int{"2": 2, "8": 8, "9": 0, "0": 0, "-1": 0, "two": 0} {
		var got int
		cmd := newHelperGateway(env, nil)
		cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
			got, err = strconv.Atoi(cmd.Flag("gateway").Value.String())
			return err
		}
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--peering", "b", "--gateway", text})
		if err := cmd.Execute(); (err != nil) != (want == 0) || err == nil && got != want {
			t.Errorf("--gateway %s: %v, %v", text, got, err)
		}
	}
	if g, err := gatewayOptions(env, records.GatewayID{Number: 2}); err != nil || g.ID != (records.GatewayID{Peering: "other", Number: 2}) {
		t.Errorf("PEERING=other: %v, %v", g.ID, err)
	}
	for variable, wrong := range map[string]string{"GATEWAY": "9", "POD_IP": "nowhere", "POD_NAME": ""} {
		all := map[string]string{"NAMESPACE": "liqonet", "NODE_NAME": "a-1", "POD_NAME": "gateway-b-x", "POD_IP": "10.244.0.7", "PEERING": "b", "GATEWAY": "3"}
		if g, err := gatewayOptions(environment(t, all), records.GatewayID{}); err != nil || g.ID.Number != 3 {
			t.Errorf("GATEWAY=3: %v, %v", g.ID, err)
		}
		all[variable] = wrong
		_, err := gatewayOptions(environment(t, all), records.GatewayID{})
		if usage, ok := errors.AsType[*cli.UsageError](err); !ok || !strings.Contains(usage.Error(), "$"+variable) {
			t.Errorf("%s=%s: error %v", variable, wrong, err)
		}
	}
}

func TestHelperNodeOptions(t *testing.T) {
	got, node, err := helperEnv(environment(t, map[string]string{"NAMESPACE": "liqonet", "NODE_NAME": "a-1"}), "127.0.0.1")
	if err != nil || got.Namespace != "liqonet" || node != "a-1" || got.HealthAddress != "127.0.0.1:6093" {
		t.Errorf("options %+v, node %s, error %v", got, node, err)
	}
	for _, one := range []map[string]string{nil, {"NAMESPACE": "liqonet"}, {"NODE_NAME": "a-1"}} {
		_, _, err := helperEnv(environment(t, one), "")
		if usage, ok := errors.AsType[*cli.UsageError](err); !ok || !strings.HasSuffix(usage.Error(), " is required") {
			t.Errorf("%v: error %v", one, err)
		}
	}
}
