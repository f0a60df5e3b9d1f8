package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/templates"
)

// kubeconfig has contexts a, the current one, and b.
const kubeconfig = `
apiVersion: v1
kind: Config
current-context: a
clusters:
- {name: a, cluster: {server: https://192.0.2.1:6443}}
- {name: b, cluster: {server: https://192.0.2.2:6443}}
users:
- {name: admin, user: {token: secret}}
contexts:
- {name: a, context: {cluster: a, user: admin, namespace: other}}
- {name: b, context: {cluster: b, user: admin}}
- {name: c, context: {cluster: b, user: admin}}
`

// errAsked ends a command after its options are known.
var errAsked = errors.New("errAsked")

// recorder returns an operation that keeps the options that it is given.
func recorder[O, R any](into *O) cli.Operation[O, R] {
	return func(_ context.Context, o O, _ progress.Reporter) (R, error) {
		*into = o
		var none R
		return none, errAsked
	}
}

// parse runs a network command on arguments, with the kubeconfig above.
func parse(t *testing.T, command func(*cli.Env, *cli.ClusterFlags) *cobra.Command, args ...string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(kubeconfig), 0o600))
	env := &cli.Env{Out: t.Output(), Err: t.Output(), Build: buildinfo.Info{Version: "v1.2.3", Repository: "registry.example/liqonet"}}
	env.Start()
	parent, local := cli.Group("network", "", "", ""), cli.NewClusterFlags()
	parent.SilenceErrors, parent.SilenceUsage = true, true
	local.Register(parent, parent.PersistentFlags())
	cmd := command(env, local)
	parent.AddCommand(cmd)
	t.Setenv("KUBECONFIG", file)
	parent.SetArgs(append([]string{cmd.Name()}, args...))
	return parent.ExecuteContext(t.Context())
}

// side returns the compared parts of a cluster in options.
func side(kubeContext, namespace string) peering.Side {
	return peering.Side{Cluster: &kube.Cluster{Context: kubeContext, Namespace: namespace}}
}

// sameOptions compares options; clusters are compared by context and namespace.
var sameOptions = cmp.Options{
	cmpopts.EquateComparable(netip.Prefix{}, netip.Addr{}),
	cmpopts.IgnoreUnexported(kube.Cluster{}),
	cmpopts.IgnoreFields(kube.Cluster{}, "Entry", "Kube", "Dynamic", "Host", "Lookup", "Locking"), // see TestLockFlags
}

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// command is the constructor of a network command with its operation.
type command[O, R any] func(*cli.Env, *cli.ClusterFlags, cli.Operation[O, R]) *cobra.Command

// optionsOf runs a command on arguments, and returns the options of its operation. The error is errAsked if the
// arguments are valid.
func optionsOf[O, R any](t *testing.T, command command[O, R], args ...string) (o O, err error) {
	t.Helper()
	err = parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
		return command(env, local, recorder[O, R](&o))
	}, args...)
	return o, err
}

// checkOptions compares the options of a command.
func checkOptions[O, R any](t *testing.T, command command[O, R], want O, args ...string) {
	t.Helper()
	got, err := optionsOf(t, command, args...)
	if !errors.Is(err, errAsked) {
		t.Errorf("%q: %v", args, err)
	}
	assert.Equal(t, fmt.Sprintf("options of %q", args), want, got, sameOptions)
}

// checkRefused wants a command to reject lines of arguments before its operation.
func checkRefused[O, R any](t *testing.T, command command[O, R], lines ...string) {
	t.Helper()
	for _, line := range lines {
		if _, err := optionsOf(t, command, strings.Fields(line)...); err == nil || errors.Is(err, errAsked) {
			t.Errorf("%q: error %v", line, err)
		}
	}
}

// answered runs a command whose operation has that result.
func answered[O, R any](t *testing.T, command command[O, R], result R, args ...string) error {
	t.Helper()
	operation := func(context.Context, O, progress.Reporter) (R, error) { return result, nil }
	return parse(t, func(env *cli.Env, local *cli.ClusterFlags) *cobra.Command { return command(env, local, operation) }, args...)
}

func TestExposeOptions(t *testing.T) {
	want := expose.Options{Cluster: side("b", "liqonet").Cluster, Peer: "a", Host: netip.MustParseAddr("192.0.2.17"), Timeout: 30 * time.Second}
	for _, command := range []command[expose.Options, expose.Exposure]{newExpose, newUnexpose} {
		checkOptions(t, command, want, "192.0.2.17", "--context", "b", "--peer", "a", "--timeout", "30s")
	}
}

func TestConnectDefaults(t *testing.T) {
	want := peering.ConnectOptions{Local: side("a", "liqonet"), Remote: side("b", "liqonet")}
	want.Remote.Overrides.FlagPrefix = "remote-"
	want.Image = "registry.example/liqonet:v1.2.3" // a publisher's build
	checkOptions(t, newConnect, want, "--remote-context", "b")
}

func TestConnectAllFlags(t *testing.T) {
	args := []string{
		"--context", "b", "--remote-context", "a", "-n", "net", "--remote-namespace", "far",
		"--name", "north", "--remote-name", "south",
		"--pod-cidr", "10.1.0.0/16,10.2.0.0/16", "--service-cidr", "10.3.0.0/16", "--node-network", "192.0.2.0/24",
		"--external-cidr", "10.4.0.0/17", "--internal-cidr", "10.5.0.0/17", "--reserve", "10.6.0.0/16", "--reserve", "10.7.0.0/16",
		"--remote-pod-cidr", "10.11.0.0/16", "--remote-service-cidr", "10.13.0.0/16", "--remote-node-network", "198.51.100.0/24",
		"--remote-external-cidr", "10.14.0.0/16", "--remote-internal-cidr", "10.15.0.0/16", "--remote-reserve", "10.16.0.0/16",
		"--server-side", "local", "--gw-server-service-type", "nodeport", "--gw-server-service-port", "5000",
		"--gw-server-service-nodeport", "30000", "--gw-server-service-annotation", "example.com/a=b,c=d", "--gw-server-service-annotation", "e=",
		"--gw-client-address", "gw.example.com", "--gw-client-port", "6000",
		"--transport", "websocket", "--gw-server-websocket", "--gw-server-websocket-port", "8443",
		"--gw-client-proxy", "http://proxy.example.com:3128", "--gw-client-proxy-secret", "proxy",
		"--mtu", "1400", "--timeout", "30s", "--wait", "--skip-validation", "--overlay", "vxlan", "--wireguard", "userspace",
		"--mss-clamp=false", "--image", "example.com/liqonet:1", "--update", "--no-rollback", "-o", "json",
	}
	want := peering.ConnectOptions{
		Local: peering.Side{
			Cluster: &kube.Cluster{Context: "b", Namespace: "net"}, Name: "north",
			Overrides: discover.Overrides{
				PodCIDRs:     []netip.Prefix{pfx("10.1.0.0/16"), pfx("10.2.0.0/16")},
				ServiceCIDRs: []netip.Prefix{pfx("10.3.0.0/16")}, NodeNetworks: []netip.Prefix{pfx("192.0.2.0/24")},
			},
			ExternalCIDR: pfx("10.4.0.0/17"), InternalCIDR: pfx("10.5.0.0/17"),
			Reserved: []netip.Prefix{pfx("10.6.0.0/16"), pfx("10.7.0.0/16")},
		},
		Remote: peering.Side{
			Cluster: &kube.Cluster{Context: "a", Namespace: "far"}, Name: "south",
			Overrides: discover.Overrides{
				PodCIDRs: []netip.Prefix{pfx("10.11.0.0/16")}, ServiceCIDRs: []netip.Prefix{pfx("10.13.0.0/16")},
				NodeNetworks: []netip.Prefix{pfx("198.51.100.0/24")}, FlagPrefix: "remote-",
			},
			ExternalCIDR: pfx("10.14.0.0/16"), InternalCIDR: pfx("10.15.0.0/16"), Reserved: []netip.Prefix{pfx("10.16.0.0/16")},
		},
		Installation: peering.Installation{Image: "example.com/liqonet:1", Overlay: records.VXLAN, Update: true, SkipValidation: true},
		Options: peering.Options{
			LocalServes: new(true),
			GatewaySettings: records.GatewaySettings{
				ServiceType: new(records.NodePort), ServicePort: new(uint16(5000)), NodePort: new(uint16(30000)),
				ServiceAnnotations: map[string]string{"example.com/a": "b,c=d", "e": ""},
				EndpointPort:       new(uint16(6000)), EndpointHost: new("gw.example.com"),
				Implementation: new(records.Userspace), MTU: new(1400), ClampMSS: new(false),
				Transport: new(records.WebSocket), WebSocket: new(true), WebSocketPort: new(uint16(8443)),
				Proxy: new("http://proxy.example.com:3128"), ProxySecret: new("proxy"),
			},
		},
		Keep: true, Timeout: 30 * time.Second,
	}
	checkOptions(t, newConnect, want, args...)
	excluded := []string{ // by others, and set in tests of their own
		"gateway-mode", "gw-server-service-loadbalancerip", "gw-server-ingress", "gw-server-ingress-class", "gw-server-ingress-annotation",
		"tunnel", "unencrypted", "allow-public",
	}
	for _, g := range records.GatewaySettingTable() {
		if given := slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a+"=", "--"+g.Flag+"=") }); given == slices.Contains(excluded, g.Flag) {
			t.Errorf("--%s is given: %t", g.Flag, given)
		}
	}
}

func TestConnectRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--mtu 500", "must be a number of bytes from 576 to 65535"},
		{"--mtu 70000", "must be a number of bytes from 576 to 65535"},
		{"--gw-server-service-port 0", "must be a port"},
		{"--gw-server-service-port 443 --gw-server-websocket", "WebSocket does not carry packets to UDP ports below 1024"},
		{"--gw-server-service-port 65536", "must be a port, 1 to 65535"},
		{"--gw-server-service-type ClusterIP --gw-server-service-nodeport 30000", "has no NodePort"},
		{"--gw-server-service-type NodePort --gw-server-service-loadbalancerip 192.0.2.1", "no load balancer"},
		{"--gw-server-service-loadbalancerip lb", "--gw-server-service-loadbalancerip"},
		{"--name x --remote-name x", `--name and --remote-name are both "x"`},
		{"--name Not_a_label", "--name"},
		{"--external-cidr 10.4.0.0/16 --internal-cidr 10.5.0.0/17", "differ in length"},
		{"--remote-external-cidr 10.4.0.0/16 --remote-internal-cidr 10.5.0.0/17", "--remote-internal-cidr"},
		{"--overlay-port 6092", "6092 is another port of gateways"},
		{"--overlay-port 51847", "51847 is another port of gateways"},
		{"--overlay-port 8472", "8472 is the port of other overlays"},
		{"--overlay-port 0", "must be a port"},
		{"--gw-server-service-annotation internal", `"internal" is not KEY=VALUE`},
		{"--gw-server-service-annotation a/b/c=d", `"a/b/c" is not an annotation's key: `},
		{"--transport tcp", "must be one of auto, udp, websocket"},
		{"--transport websocket --gw-server-websocket=false --gw-server-ingress=", "the server has no address for WebSocket"},
		{"--gw-server-websocket --gw-server-ingress gw.example.com", "exclude each other"},
		{"--gw-server-ingress 192.0.2.1", "must be a name in lower case"},
		{"--gw-client-proxy proxy:3128", "must be http://HOST:PORT"},
		{"--gateway-node-selector zone", `"zone" is not KEY=VALUE`},
		{"--gateway-node-selector zone=-", `"-" is not a label's value: `},
		{"--gateway-toleration edge:Never", `"Never" is no effect of taints`},
		{"--image-pull-secret A", `"A" is not the name of an object: `},
		{"--priority-class A", `"A" is not the name of an object: `},
		{"--requests gpu=1", `"gpu" is neither cpu nor memory`},
		{"--limits memory=much", `"much" is not a quantity such as 100m or 64Mi`},
		{"--limits memory=-1", `"-1" is not a quantity`},
		{"--timeout 0s", "must be longer than zero"},
		{"--remote-context a --context a", "the same"},
	} {
		_, err := optionsOf(t, newConnect, append([]string{"--remote-context", "b"}, strings.Fields(c.args)...)...)
		assert.ErrorContains(t, c.args, err, c.want)
	}
	checkRefused(t, newConnect, "--remote-kubeconfig /absent --remote-context b")
}

func TestInit(t *testing.T) {
	want := peering.InitOptions{
		Side: side("b", "liqonet"), Installation: peering.Installation{Image: "i", Overlay: records.Geneve, OverlayPort: 6191}, Timeout: time.Minute,
	}
	want.Side.Name, want.Side.Overrides.PodCIDRs = "north", []netip.Prefix{pfx("10.1.0.0/16")}
	checkOptions(t, newInit, want, "--context", "b", "--name", "north", "--overlay", "geneve", "--overlay-port", "6191",
		"--image", "i", "--pod-cidr", "10.1.0.0/16", "--timeout", "1m")
}

func TestDisconnect(t *testing.T) {
	for _, c := range []struct {
		args string
		want removal.DisconnectOptions
	}{
		{"--remote-context b", removal.DisconnectOptions{Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster}},
		{"b --one-side", removal.DisconnectOptions{Local: side("a", "liqonet").Cluster, Peer: "b", OneSide: true}},
		{"b --remote-context b", removal.DisconnectOptions{Local: side("a", "liqonet").Cluster, Remote: side("b", "liqonet").Cluster, Peer: "b"}},
	} {
		checkOptions(t, newDisconnect, c.want, strings.Fields(c.args)...)
	}
}

func TestReset(t *testing.T) {
	for _, c := range []struct {
		args string
		want removal.ResetOptions
	}{
		{"--force --context b", removal.ResetOptions{Force: true, Image: "registry.example/liqonet:v1.2.3"}},
		{"--verify-only --context b --image i --timeout 1m", removal.ResetOptions{VerifyOnly: true, Image: "i", Timeout: time.Minute}},
	} {
		c.want.Cluster = side("b", "liqonet").Cluster
		checkOptions(t, newReset, c.want, strings.Fields(c.args)...)
	}
	checkRefused(t, newReset, "--verify-only --force", "--verify-only --dry-run")
}

// TestVerdictOnRemains: remaining state is an answer and has its own exit code. A node that cannot be verified is an
// error only with --verify-only.
func TestVerdictOnRemains(t *testing.T) {
	for _, c := range []struct {
		remains          *removal.Remains
		want, verifyOnly error
	}{
		{nil, nil, nil},
		{&removal.Remains{Nodes: []removal.NodeRemains{{Name: "a-1"}}}, nil, nil},
		{&removal.Remains{Nodes: []removal.NodeRemains{{Name: "a-1", Left: []string{"rule 7600"}}}}, cli.ErrRemains, cli.ErrRemains},
		{&removal.Remains{Objects: []string{"ConfigMap liqonet/ipam"}}, cli.ErrRemains, cli.ErrRemains},
		{&removal.Remains{Silent: []string{"a-2"}}, nil, cli.ErrRemains},
	} {
		for flag, want := range map[string]error{"": c.want, "--verify-only": c.verifyOnly} {
			err := answered(t, newReset, removal.ResetResult{Remains: c.remains}, strings.Fields(flag)...)
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%+v %s: error %v, want %v", c.remains, flag, err, want)
			}
		}
	}
}

// TestPodSettings: a setting that is not given is unchanged, an empty one restores the default.
func TestPodSettings(t *testing.T) {
	for _, c := range []struct {
		args []string
		want templates.Pods
	}{
		{nil, templates.Pods{}},
		{
			[]string{"--pod-labels", "a=b,c=", "--pod-labels", "d=e", "--pod-annotations", "x=y, z=1", "--image-pull-secret", "one,two", "--priority-class", "high"},
			templates.Pods{
				Labels: map[string]string{"a": "b", "c": "", "d": "e"}, Annotations: map[string]string{"x": "y, z=1"},
				ImagePullSecrets: []string{"one", "two"}, PriorityClass: new("high"),
			},
		},
		{
			[]string{"--requests", "cpu=100m,memory=64Mi", "--limits", "memory=1Gi"},
			templates.Pods{
				Requests: corev1.ResourceList{"cpu": apiresource.MustParse("100m"), "memory": apiresource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{"memory": apiresource.MustParse("1Gi")},
			},
		},
		{
			[]string{"--gateway-node-selector", "zone=1", "--gateway-toleration", "edge=yes:NoSchedule,spot", "--gateway-toleration", "x:NoExecute"},
			templates.Pods{GatewayNodeSelector: map[string]string{"zone": "1"}, GatewayTolerations: []corev1.Toleration{
				{Key: "edge", Operator: corev1.TolerationOpEqual, Value: "yes", Effect: corev1.TaintEffectNoSchedule},
				{Key: "spot", Operator: corev1.TolerationOpExists}, {Key: "x", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
			}},
		},
		{
			[]string{"--gateway-node-selector", "", "--gateway-toleration", "", "--priority-class", ""},
			templates.Pods{GatewayNodeSelector: map[string]string{}, GatewayTolerations: []corev1.Toleration{}, PriorityClass: new("")},
		},
	} {
		got, err := optionsOf(t, newConnect, append([]string{"--remote-context", "b"}, c.args...)...)
		if diff := cmp.Diff(c.want, got.Pods); !errors.Is(err, errAsked) || diff != "" {
			t.Errorf("%q: %v, settings (-want +got):\n%s", c.args, err, diff)
		}
	}
}

// TestLockFlags: only commands that change clusters have the flags of the lock, and the lock identifies the command.
func TestLockFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want kube.LockOptions
	}{
		{nil, kube.LockOptions{Timeout: 10 * time.Minute, Duration: 15 * time.Second}},
		{[]string{"--lock-timeout", "1s", "--break-lock", "--lock-duration", "2s"}, kube.LockOptions{Timeout: time.Second, Duration: 2 * time.Second, Break: true}},
	} {
		got, err := optionsOf(t, newReset, append(c.args, "--context", "b")...)
		if !errors.Is(err, errAsked) {
			t.Fatal(err)
		}
		holder := got.Cluster.Locking.Holder
		if who, verb, _ := strings.Cut(holder, ": "); !strings.Contains(who, "@") || !strings.HasSuffix(verb, "reset") {
			t.Errorf("holder %q", holder)
		}
		c.want.Holder = holder
		if got.Cluster.Locking != c.want {
			t.Errorf("%q: %+v, want %+v", c.args, got.Cluster.Locking, c.want)
		}
	}
	checkRefused(t, newReset, "--lock-timeout 0s")
	for _, cmd := range New(&cli.Env{}).Commands() {
		writes := slices.Contains([]string{"init", "connect", "disconnect", "reset", "expose", "unexpose", "rotate-keys"}, cmd.Name())
		if has := cmd.Flags().Lookup("break-lock") != nil; has != writes {
			t.Errorf("network %s has the flags: %v, want %v", cmd.Name(), has, writes)
		}
	}
}
