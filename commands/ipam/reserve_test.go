package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam"
)

// clusterWithReservations returns a cluster with a pod CIDR and a peering, and pools of 768 addresses.
func clusterWithReservations(t *testing.T) *kube.Cluster {
	t.Helper()
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{})
	err := inventory.UpdateReservations(t.Context(), c, func(r *ipam.Registry) error {
		return errors.Join(
			r.SetPools(netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.0.2.0/23")),
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.244.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR, Shared: true}),
			r.Reserve(ipam.Reservation{Range: netip.MustParsePrefix("10.71.0.0/16"), Real: netip.MustParsePrefix("10.244.0.0/16"), Owner: ipam.Peering("b"), Purpose: ipam.PeerPods}),
		)
	})
	require.NoError(t, err)
	return c
}

// ipamCommand runs an `ipam` command on a cluster, instead of the one that flags would select; nil: there is none. It
// returns its output and exit code.
func ipamCommand(t *testing.T, c *kube.Cluster, args ...string) (out string, code int, err error) {
	t.Helper()
	var b strings.Builder
	env := &cli.Env{Out: &b, Err: t.Output()}
	env.Start()
	connect := func(context.Context) (*kube.Cluster, error) {
		if c == nil {
			return nil, errors.New("a cluster is asked")
		}
		return c, nil
	}
	parent := cli.Group("ipam", "", "", "")
	parent.SilenceErrors, parent.SilenceUsage = true, true
	parent.SetFlagErrorFunc(cli.FlagError)
	parent.AddCommand(newIPAMList(env, connect), newIPAMReserve(env, connect), newIPAMAcquire(env, connect),
		newIPAMRelease(env, connect))
	parent.SetArgs(args)
	err = parent.ExecuteContext(t.Context())
	return b.String(), cli.ExitCode(t.Context(), err), err
}

// changed returns the output of a dry run for one change of reservations.
func changed(mark, reservation string) string {
	return "test:\n  " + mark + " reservation   " + reservation + "\n1 cluster: 0 objects to create, 1 to change, 0 to delete\n" +
		"Nothing was changed. Objects, fields and kernels: -o wide\n"
}

// TestReservations reserves, lists and releases ranges; each step depends on the steps before.
func TestReservations(t *testing.T) {
	c := clusterWithReservations(t)
	for _, step := range []struct{ line, out, fails string }{
		{line: "reserve 10.0.0.128/25 --owner vpn --dry-run", out: changed("+", "10.0.0.128/25 (user \"vpn\" reserved range)")},
		{line: "reserve 10.0.0.128/25 --owner vpn", out: "10.0.0.128/25\n"},
		{line: "reserve 10.0.0.128/25 --owner vpn --dry-run", out: "test: no changes\n"},
		{line: "reserve 10.0.0.128/25 --owner vpn", out: "10.0.0.128/25\n"},
		{line: "reserve 10.0.0.0/24 --owner lab --dry-run", fails: "conflict with user \"vpn\" reserved range 10.0.0.128/25"},
		{
			line:  "reserve 10.0.0.0/24 --owner lab",
			fails: `reserve 10.0.0.0/24 for user "lab" reserved range: conflict with user "vpn" reserved range 10.0.0.128/25`,
		},
		{line: "reserve 10.71.8.0/24", fails: `conflict with peering "b" pods 10.71.0.0/16`},
		{line: "reserve 10.244.8.0/24", fails: "conflict with pod CIDR 10.244.0.0/16"},
		{line: "reserve 10.244.8.0/24 --shared", out: "10.244.8.0/24\n"},

		{line: "acquire /24 --owner ci-1 --dry-run", out: changed("+", "10.0.2.0/24 (user \"ci-1\" reserved range)")},
		{line: "acquire /24 --owner ci-1", out: "10.0.2.0/24\n"},
		{line: "acquire 24 --owner ci-2", out: "10.0.3.0/24\n"},
		{line: "acquire /24 --owner ci-1", out: "10.0.2.0/24\n"},
		{line: "acquire /25 --owner ci-1", fails: `acquire a /25 for user "ci-1" reserved range: it holds 10.0.2.0/24`},
		{line: "acquire /28 --owner odd --prefer 100.64.0.16/28", out: "100.64.0.16/28\n"},
		{line: "acquire /28 --owner odd2 --prefer 100.64.0.16/28", out: "10.0.0.0/28\n"},
		{line: "acquire /24 --owner ci-3", fails: "no free addresses (pools: 10.0.0.0/24, 10.0.2.0/23)"},

		{line: "list 10.0.0.129", out: "10.0.0.129 is held: user \"vpn\" reserved range 10.0.0.128/25\n\nRANGE           USED FOR                    REAL RANGE\n10.0.0.128/25   user \"vpn\" reserved range   -\n"},
		{
			line: "list 10.244.8.9",
			out: "10.244.8.9 is held: reserved range 10.244.8.0/24\n\nRANGE           USED FOR         REAL RANGE\n" +
				"10.244.0.0/16   pod CIDR         -\n10.244.8.0/24   reserved range   -\n",
		},
		{line: "list 172.16.0.0/12", out: "172.16.0.0/12 is free\n"},
		{line: "list user/nobody", out: "user/nobody holds nothing\n"},
		{line: "list peering/b", out: "RANGE          USED FOR           REAL RANGE\n10.71.0.0/16   peering \"b\" pods   10.244.0.0/16\n"},

		{line: "release 10.0.2.0/24 --owner ci-2", fails: `release 10.0.2.0/24 of user "ci-2": held by another owner: user "ci-1" reserved range`},
		{line: "release 10.0.2.0/24", out: "10.0.2.0/24\n"},
		{line: "release 10.0.2.0/24"},
		{line: "release --owner ci-2 --dry-run", out: changed("-", "10.0.3.0/24 (user \"ci-2\" reserved range)")},
		{line: "release --owner ci-2", out: "10.0.3.0/24\n"},
		{line: "release 10.71.0.0/16", fails: `in use: peering "b" pods`},
		{line: "release 10.244.0.0/16", fails: "in use: pod CIDR"},
		{line: "release 10.244.8.0/24", out: "10.244.8.0/24\n"},
	} {
		out, _, err := ipamCommand(t, c, strings.Fields(step.line)...)
		if step.fails == "" && err != nil || step.fails != "" && (err == nil || !strings.Contains(err.Error(), step.fails)) {
			t.Errorf("%s: error %v, want %q", step.line, err, step.fails)
		}
		assert.Equal(t, step.line, step.out, out)
	}
}

// TestReservationsAfterLoss: if ConfigMap ipam has lost reservations, the ranges that the records use are not allocated
// again.
func TestReservationsAfterLoss(t *testing.T) {
	var objects []runtime.Object
	for name, file := range map[string]string{records.FabricName: "fabric.yaml", records.PeeringName("b"): "peering-b.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "ipam", "translate", "testdata", file))
		require.NoError(t, err)
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: inventory.Meta(records.DefaultNamespace, name), Data: map[string]string{records.DataKey: string(text)},
		})
	}
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: objects})
	for line, conflict := range map[string]string{
		"reserve 10.71.8.0/24":             `peering "b" pods 10.71.0.0/16`,
		"reserve 10.81.0.0/24 --owner lab": `peering "b" external CIDR 10.81.0.0/16`,
		"reserve 10.96.4.0/24":             "service CIDR 10.96.0.0/16",
		"reserve 10.70.8.0/24 --shared":    "external CIDR 10.70.0.0/16",
	} {
		if out, _, err := ipamCommand(t, c, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), "conflict with "+conflict) {
			t.Errorf("%s: %q, %v, want a conflict with %s", line, out, err, conflict)
		}
	}
	for _, used := range []string{"10.71.0.0/16", "10.244.0.0/16"} {
		out, _, err := ipamCommand(t, c, "acquire", "/16", "--owner", "ci", "--prefer", used)
		if err != nil || out != "10.97.0.0/16\n" {
			t.Errorf("acquire %s: %q, %v", used, out, err)
		}
	}
	r, err := inventory.Reservations(t.Context(), c)
	require.NoError(t, err)
	if held := r.Held(ipam.Peering("b")); len(held) != 4 { // pods, external CIDR, gateway, exposed host
		t.Errorf("peering b holds %v", held)
	}
}

// TestIPAMWithoutInstallation: in a cluster without liqonet there are no reservations, and none are created.
func TestIPAMWithoutInstallation(t *testing.T) {
	c, client := fakecluster.NewAPIServer(fakecluster.Config{})
	for _, line := range []string{
		"list", "list 10.71.3.7", "reserve 10.9.0.0/16", "acquire /16 --owner ci", "release --owner ci", "acquire /16 --owner ci --dry-run",
	} {
		out, code, err := ipamCommand(t, c, strings.Fields(line)...)
		if code != cli.ExitFailure || out != "" || err == nil || err.Error() != `liqonet is not installed in namespace liqonet of cluster "test"` {
			t.Errorf("%s: exit code %d, %q, %v", line, code, out, err)
		}
	}
	for _, a := range client.Actions() {
		if !slices.Contains([]string{"get", "list"}, a.GetVerb()) {
			t.Errorf("%s %s", a.GetVerb(), a.GetResource().Resource)
		}
	}
}

// TestAddressesOfNoHost: ranges that cannot be reserved are usage errors. No request is sent to a cluster.
func TestAddressesOfNoHost(t *testing.T) {
	for _, line := range []string{
		"reserve 127.0.0.0/8", "reserve 0.0.0.0/0", "reserve 224.0.0.0/4 --owner vpn", "reserve 169.254.18.0/30",
		"acquire /8 --owner x --prefer 127.0.0.0/8", "acquire /24 --owner x --prefer 169.254.1.0/24",
	} {
		_, code, err := ipamCommand(t, nil, strings.Fields(line)...)
		if code != cli.ExitUsage || err == nil || !strings.Contains(err.Error(), "which is not for hosts") {
			t.Errorf("%s: exit code %d, error %v", line, code, err)
		}
	}
}

func TestReservationsExitCodesAndHints(t *testing.T) {
	c := clusterWithReservations(t)
	for _, tt := range []struct {
		line, hint string
		code       int
	}{
		{"acquire /16 --owner x", "liqoctl network init --pool", cli.ExitNoneFree},
		{"acquire /33 --owner x", "", cli.ExitUsage},
		{"acquire /24", "", cli.ExitUsage},
		{"acquire /24 --owner a/b", "", cli.ExitUsage},
		{"acquire /24 --owner x --prefer 10.0.0.0/25", "", cli.ExitUsage},
		{"reserve 10.0.0.1/24", "", cli.ExitUsage},
		{"release", "", cli.ExitUsage},
		{"release 10.0.0", "", cli.ExitUsage},
		{"list b", "", cli.ExitUsage},
		{"reserve 10.71.8.0/24", "liqoctl ipam list 10.71.0.0/16", cli.ExitFailure},
		{"release 10.71.0.0/16", "liqoctl network disconnect b", cli.ExitFailure},
	} {
		_, code, err := ipamCommand(t, c, strings.Fields(tt.line)...)
		if code != tt.code || !strings.Contains(hint.Of(err), tt.hint) {
			t.Errorf("%s: exit code %d, error %v, hint %q; want code %d, hint %q", tt.line, code, err, hint.Of(err), tt.code, tt.hint)
		}
	}
}

func TestReservationsForPrograms(t *testing.T) {
	c := clusterWithReservations(t)
	var one ipam.Reservation
	out, _, err := ipamCommand(t, c, "acquire", "/24", "--owner", "ci-1", "-o", "json")
	if err != nil || json.Unmarshal([]byte(out), &one) != nil || one.Range != netip.MustParsePrefix("10.0.0.0/24") || one.Owner != ipam.User("ci-1") {
		t.Errorf("acquire: %s, %v", out, err)
	}
	var answer ipamList
	out, _, err = ipamCommand(t, c, "list", "10.0.0.7", "-o", "json")
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || len(answer.Reservations) != 1 || answer.Reservations[0] != one || answer.Holder == nil || *answer.Holder != one {
		t.Errorf("list: %s, %v", out, err)
	}
	out, _, err = ipamCommand(t, c, "list", "192.168.0.0/24", "-o", "yaml")
	if want := "reservations: []\n"; err != nil || !strings.HasSuffix(out, want) || strings.Contains(out, "holder") {
		t.Errorf("list of what is free: %s, %v, want %s", out, err, want)
	}
	out, _, err = ipamCommand(t, c, "release", "10.0.0.0/24", "-o", "wide")
	if want := "10.0.0.0/24   user \"ci-1\" reserved range   -            user/ci-1   reserved   no\n"; err != nil || !strings.Contains(out, want) {
		t.Errorf("release: %s, %v, want %s", out, err, want)
	}
	out, _, err = ipamCommand(t, c, "release", "10.0.0.0/24", "-o", "json")
	if err != nil || out != "[]\n" {
		t.Errorf("release of what is free: %q, %v, want an empty list", out, err)
	}
}
