package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/build"
	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/faults"
	"liqonet.io/liqonet/lab/middlebox"
	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/process"
	"liqonet.io/liqonet/lab/progress"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// traefik is a real ingress controller of cluster b, on the node ingressNode.
type traefik struct {
	program string
	env     []string
	at      netip.AddrPort
	in      *netns.Namespace
	spawner *process.Spawner
	running *exec.Cmd
}

// newTraefik starts Traefik, which watches the API server of cluster b, and ends it with the test.
func (x tunnels) newTraefik(ctx context.Context, t *testing.T) *traefik {
	t.Helper()
	program, err := build.Traefik(ctx, progress.New(t.Output()))
	require.NoError(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(kubectl(ctx, t, x.lab, "b", "config", "view", "--raw", "--minify", "--flatten")), 0o600))
	server := netip.AddrPortFrom(x.declared.Clusters[1].ControlPlaneAddress(), spec.APIPort) // as nodes reach it
	kubectl(ctx, t, x.lab, "b", "--kubeconfig", kubeconfig, "config", "set-cluster", "b", "--server", "https://"+server.String())
	c := &traefik{
		program: program, env: append(os.Environ(), "KUBECONFIG="+kubeconfig), at: netip.AddrPortFrom(x.ingressAddress(), ingressPort),
		in: x.namespace(ctx, t, ingressNode), spawner: process.NewSpawner(),
	}
	c.start(t)
	t.Cleanup(func() {
		_ = c.running.Process.Kill()
		_ = c.running.Wait()
	})
	return c
}

// start starts another process. One before it may still have connections.
func (c *traefik) start(t *testing.T) {
	t.Helper()
	c.running = exec.Command(c.program,
		"--entrypoints.https.address="+c.at.String(), "--entrypoints.https.reuseport", "--entrypoints.https.http.tls",
		"--providers.kubernetesingress.ingressclass="+ingressClass, "--global.checknewversion=false")
	c.running.Env, c.running.Stdout, c.running.Stderr = c.env, t.Output(), t.Output()
	require.NoError(t, c.spawner.Start(c.running, c.in))
}

// testTraefik connects through Traefik, which obeys the Ingress, has a certificate of its own, and speaks HTTP/2, too.
func (x tunnels) testTraefik(ctx context.Context, t *testing.T) {
	file := filepath.Join(t.TempDir(), "ingress.json")
	require.NoError(t, os.WriteFile(file, x.ingressService(t), 0o600))
	class := filepath.Join(t.TempDir(), "class.json")
	require.NoError(t, os.WriteFile(class, fmt.Appendf(nil, `{"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": %q},
		"spec": {"controller": "traefik.io/ingress-controller"}}`, ingressClass), 0o600))
	kubectl(ctx, t, x.lab, "b", "apply", "-f", file, "-f", class)
	defer kubectl(ctx, t, x.lab, "b", "delete", "-f", file, "-f", class)
	c := x.newTraefik(ctx, t)
	var behind [2]behindTLS // between Traefik and the gateway of the other node: one direction each
	captures := []*capture.Capture{x.captureMessages(ctx, t, ingressNode, behind[0].see), x.captureMessages(ctx, t, "b-2", behind[1].see)}
	conn := x.connector.connect(ctx, t, "--gw-server-ingress", ingressHost, "--gw-server-ingress-class", ingressClass)
	x.awaitTransport(ctx, t, faults.WebSocket)
	keepSending(ctx, t, x.lab, conn, forAMinute...)
	testEveryPod(ctx, t, x.lab, conn)
	x.testTraefikEnds(ctx, t, c, syscall.SIGTERM, drainedWithin)
	x.testTraefikEnds(ctx, t, c, syscall.SIGKILL, killedWithin)
	testEveryPod(ctx, t, x.lab, conn)
	x.awaitTransport(ctx, t, faults.WebSocket)
	for i, c := range captures {
		if counts, err := c.Close(); err != nil || counts.Missed > 0 {
			t.Errorf("%d of %d packets were missed, %v", counts.Missed, counts.Seen, err)
		}
		behind[i].judge(t)
	}
	through := x.rates(ctx, t)
	x.disconnect(ctx, t)
	x.connector.connect(ctx, t, overWebSocket...)
	x.awaitTransport(ctx, t, faults.WebSocket)
	direct := x.rates(ctx, t)
	for i := range direct {
		t.Logf("from %s: through Traefik %.0f Mbit/s, %.2f of the Service's %.0f", []string{"a", "b"}[i], through[i]/1e6, through[i]/direct[i], direct[i]/1e6)
	}
	x.disconnect(ctx, t)
}

// How long no packets may cross when Traefik ends. Killed, it has to start first, and answers 404 until it has read the
// Ingress: a client waits up to 3 and then up to 7.5 seconds after that.
const (
	drainedWithin = time.Second
	killedWithin  = 15 * time.Second
)

// testTraefikEnds ends Traefik by a signal, while pods exchange packets, and starts it again. With SIGTERM, connections
// end ten seconds later.
func (x tunnels) testTraefikEnds(ctx context.Context, t *testing.T, c *traefik, by syscall.Signal, within time.Duration) {
	t.Helper()
	s, err := x.bed.Run(ctx, faults.Fault{Name: "Traefik ends by " + by.String(), Begin: func(context.Context, *faults.Bed) (func(context.Context) error, error) {
		ended := c.running
		if err := ended.Process.Signal(by); err != nil {
			return nil, err
		}
		c.start(t)
		_ = ended.Wait() // its exit code does not matter
		return nil, nil
	}})
	require.NoError(t, err)
	t.Logf("Traefik ends by %s: %s", by, s.Line())
	if s.Sent == 0 || s.Broken > 0 || s.Without-s.Stalled > within || s.Pause-s.Stalled > 2*within {
		t.Errorf("Traefik ends by %s: %+v", by, s)
	}
}

// captureMessages reads the WebSockets between Traefik and pods of b that arrive at a node.
func (x tunnels) captureMessages(ctx context.Context, t *testing.T, node string, seen func(middlebox.Message)) *capture.Capture {
	t.Helper()
	streams := capture.NewStreams(func(capture.Direction) func([]byte) error { return middlebox.Messages(seen) })
	pods := x.declared.Clusters[1].PodCIDR
	between := func(controller, pod netip.Addr) bool { return controller == x.ingressAddress() && pods.Contains(pod) }
	c, err := capture.Start(x.namespace(ctx, t, node).Path(), []string{"eth0"}, func(p capture.Packet) {
		if p.Protocol == capture.TCP && (between(p.Source, p.Target) || between(p.Target, p.Source)) {
			if err := streams.Add(p); err != nil {
				seen(middlebox.Message{Err: err})
			}
		}
	})
	require.NoError(t, err)
	return c
}

// rates are those of one TCP stream through the tunnel, from a and from b, in bits a second.
func (x tunnels) rates(ctx context.Context, t *testing.T) (all []float64) {
	t.Helper()
	var r performance
	out := x.installer.must(ctx, t, "network", "test", "--context", "a", "--remote-context", "b", "--perf", "-o", "json", "--timeout", "5m")
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	for _, p := range r.Performance {
		all = append(all, p.Tunnel.StreamBitsPerSecond)
	}
	return all
}
