package kernel

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// unprivileged marks the process that TestNetAdminSuffices starts.
const unprivileged = "LIQONET_TEST_UNPRIVILEGED"

// TestNetAdminSuffices runs itself in a namespace with CAP_NET_ADMIN only and a read-only /proc/sys, like a gateway's
// container.
func TestNetAdminSuffices(t *testing.T) {
	t.Parallel()
	if os.Getenv(unprivileged) != "" {
		configureUnprivileged(t)
		return
	}
	ns := newNamespace(t)
	const confine = `mount -o bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && ` +
		`exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+net_admin "$@"`
	command := exec.Command("nsenter", "--net="+ns.Path(), "unshare", "--mount", "sh", "-c", confine, "sh",
		os.Args[0], "-test.run=^TestNetAdminSuffices$", "-test.v")
	command.Env = append(os.Environ(), unprivileged+"=1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func configureUnprivileged(t *testing.T) {
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err == nil {
		t.Fatal("/proc/sys is writable: this test would prove nothing")
	}
	const netAdminAlone = "CapEff:\t0000000000001000\n" // 1 << CAP_NET_ADMIN
	if status, err := os.ReadFile("/proc/self/status"); err != nil || !strings.Contains(string(status), netAdminAlone) {
		t.Fatalf("capabilities are not %q: %v\n%s", netAdminAlone, err, status)
	}
	k, err := Open()
	require.NoError(t, err)
	defer k.Close()
	if _, err := k.Watch(t.Context(), make(chan struct{}, 1)); err != nil {
		t.Error(err)
	}
	want := topology.NodeLike()
	want.LocalRuleMoved = true
	reach(t, k, want)
	assert.NoError(t, k.FlushConntrack([]netip.Prefix{netip.MustParsePrefix("10.11.0.0/16")}))
	reach(t, k, netops.State{})
}
