package commands

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/translation/authority"
)

// environment is what the helpers' manifests set.
func environment(t *testing.T, variables map[string]string) *Env {
	t.Helper()
	env := &Env{Err: io.Discard}
	for name, value := range variables {
		env.Environ = append(env.Environ, name+"="+value)
	}
	env.start(false)
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
		"NAMESPACE": "liqonet", "NODE_NAME": "a-1", "POD_NAME": "gateway-b-x", "POD_IP": "10.244.0.7", "PEERING": "ignored",
	})
	f := helperGatewayFlags{peering: "b", keys: "/keys"}
	f.healthAddress = ":6093"
	g, err := f.options(env)
	if err != nil {
		t.Fatal(err)
	}
	if g.Namespace != "liqonet" || g.Node != "a-1" || g.Pod != "gateway-b-x" || g.PodIP != netip.MustParseAddr("10.244.0.7") ||
		g.ID != (records.GatewayID{Peering: "b", Number: 1}) || g.Keys != "/keys" || g.HealthAddress != ":6093" {
		t.Errorf("options %+v", g)
	}
	if !g.Log.Enabled(t.Context(), slog.LevelInfo) || g.Log.Enabled(t.Context(), slog.LevelDebug) {
		t.Error("a helper logs information, and not each detail")
	}
	for text, want := range map[string]int{"2": 2, "8": 8, "9": 0, "0": 0, "-1": 0, "two": 0} {
		f.gateway = text
		if g, err := f.options(env); (err != nil) != (want == 0) || err == nil && g.ID.Number != want {
			t.Errorf("--gateway %s: %v, %v", text, g.ID, err)
		}
	}
	f.gateway = ""
	env.Environ = append(env.Environ, "GATEWAY=3")
	if g, err := f.options(env); err != nil || g.ID.Number != 3 {
		t.Errorf("GATEWAY=3: %v, %v", g.ID, err)
	}
	var usage *UsageError
	f.podIP = "nowhere"
	if _, err := f.options(env); !errors.As(err, &usage) {
		t.Errorf("error %v", err)
	}
}

func TestHelperTranslateOptions(t *testing.T) {
	folder := t.TempDir()
	f := helperTranslateFlags{address: ":8443", authority: folder}
	env := environment(t, map[string]string{"NAMESPACE": "liqonet"})
	if _, err := f.options(env); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("without an authority: %v", err)
	}
	made, err := authority.New("translation.liqonet.svc")
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := f.options(env)
	if err != nil || s.Namespace != "liqonet" || s.Address != ":8443" || !s.Authority.Until().Equal(made.Until()) || s.Log == nil {
		t.Errorf("options %+v, error %v", s, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "tls.key"), certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.options(env); err == nil {
		t.Error("what is no key was taken")
	}
	var usage *UsageError
	if _, err := f.options(environment(t, nil)); !errors.As(err, &usage) {
		t.Errorf("error %v", err)
	}
}

func TestHelperNodeOptions(t *testing.T) {
	f := helperFlags{node: "a-2", healthAddress: "127.0.0.1:6093"}
	o, node, err := f.options(environment(t, map[string]string{"NAMESPACE": "liqonet", "NODE_NAME": "a-1"}))
	if err != nil || o.Namespace != "liqonet" || node != "a-2" || o.HealthAddress != "127.0.0.1:6093" {
		t.Errorf("options %+v, node %s, error %v", o, node, err)
	}
	var usage *UsageError
	if _, _, err := f.options(environment(t, nil)); !errors.As(err, &usage) {
		t.Errorf("error %v", err)
	}
}
