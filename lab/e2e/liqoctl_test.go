package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
	"liqonet.io/liqonet/lab/spec"
)

// liqoctl is the program under test, with a lab's kubeconfig unless it has another.
type liqoctl struct {
	path       string
	lab        *lab.Lab
	kubeconfig string // "": the lab's, whose user may do everything
	defaults   bool   // new peerings have as many gateways as by default; else one, which tests can look into
}

// newLiqoctl returns the program for a lab, and puts its image on every node, as a user without a registry would.
func newLiqoctl(ctx context.Context, t *testing.T, l *lab.Lab) liqoctl {
	t.Helper()
	image, err := os.Open(liqoctlImage(t))
	require.NoError(t, err)
	defer image.Close()
	require.NoError(t, l.Load(ctx, image))
	return liqoctl{path: liqoctlProgram(t), lab: l}
}

// run returns stdout, stderr and the exit code of the program.
func (c liqoctl) run(ctx context.Context, t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(ctx, c.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cmp.Or(c.kubeconfig, c.lab.Kubeconfig()), "LIQOCTL_IMAGE="+imageName,
		"LIQOCTL_TIMEOUT="+(2*patience).String()) // of commands without --timeout
	if !c.defaults {
		cmd.Env = append(cmd.Env, "LIQOCTL_GATEWAYS=1", "LIQOCTL_REMOTE_GATEWAYS=1")
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

// must runs the program and fails the test unless it exits with 0.
func (c liqoctl) must(ctx context.Context, t *testing.T, args ...string) string {
	t.Helper()
	out, said, code := c.run(ctx, t, args...)
	if code != 0 {
		t.Fatalf("liqoctl %v: exit code %d\n%s%s", args, code, out, said)
	}
	return out
}

// connection has the fields of `network connect -o json` that tests use.
type connection struct {
	Changed bool
	MTU     int
	Local   connectedSide
	Remote  connectedSide
	Stages  []struct {
		Name        string
		TookSeconds float64
	}
	TookSeconds float64
}

type connectedSide struct {
	Addresses []struct {
		Kind                string
		Original, ReachedAt netip.Prefix
	}
	Proof struct {
		Nodes []struct{ Name string }
	}
	UnverifiedNodes []struct{ Name, Reason string }
}

// fullSize is the payload of the largest UDP packet that is not fragmented, in bytes: less IP 20 and UDP 8.
func (c connection) fullSize() string { return strconv.Itoa(c.MTU - 28) }

// seen is the remapped address of a pod of the other cluster.
func (s connectedSide) seen(t *testing.T, real string) string {
	t.Helper()
	a := netip.MustParseAddr(real)
	for _, m := range s.Addresses {
		if m.Kind != "pods" || !m.Original.Contains(a) {
			continue
		}
		if m.Original.Bits() != 16 {
			t.Fatalf("mapping of %s: the tests want a /16", m.Original)
		}
		host, network := a.As4(), m.ReachedAt.Addr().As4()
		return netip.AddrFrom4([4]byte{network[0], network[1], host[2], host[3]}).String()
	}
	t.Fatalf("no mapping of %s in %+v", real, s.Addresses)
	return ""
}

// connect connects clusters a and b of the lab.
func (c liqoctl) connect(ctx context.Context, t *testing.T, args ...string) connection {
	t.Helper()
	var got connection
	out := c.must(ctx, t, append([]string{"network", "connect", "--context", "a", "--remote-context", "b",
		"--gw-server-service-type", "NodePort", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	for _, s := range got.Stages {
		t.Logf("stage %-10s %5.2fs", s.Name, s.TookSeconds)
	}
	t.Logf("connect took %.2fs", got.TookSeconds)
	return got
}

// startEmpty starts a lab for one test, and ends it with the test.
func startEmpty(ctx context.Context, t *testing.T, name string, s spec.Spec) *lab.Lab {
	t.Helper()
	require.NoError(t, lab.Remove(ctx, name))
	l, err := lab.Start(ctx, lab.Options{Name: name, Spec: s, Log: t.Output()})
	endLab(ctx, t, name)
	require.NoError(t, err)
	return l
}

// startLab starts a lab for one test, with a pod on every node, and ends it with the test.
func startLab(ctx context.Context, t *testing.T, name string, s spec.Spec) *lab.Lab {
	t.Helper()
	l := startEmpty(ctx, t, name, s)
	clusters := s.Complete().Clusters
	for _, cluster := range clusters {
		kubectl(ctx, t, l, cluster.Name, "apply", "-f", "testdata/echo.yaml")
	}
	for _, cluster := range clusters {
		awaitRollout(ctx, t, l, cluster.Name, "default", "echo")
	}
	return l
}

// nodesOf returns the names of a cluster's nodes.
func nodesOf(ctx context.Context, t *testing.T, l *lab.Lab, cluster string) []string {
	t.Helper()
	status, err := l.Status(ctx)
	require.NoError(t, err)
	var names []string
	for _, c := range status.Clusters {
		if c.Name != cluster {
			continue
		}
		for _, n := range c.Nodes {
			names = append(names, n.Name)
		}
	}
	if len(names) == 0 {
		t.Fatal(fmt.Errorf("cluster %s has no nodes", cluster))
	}
	return names
}
