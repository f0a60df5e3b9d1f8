package kernel

import (
	"os/exec"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/testbed/topology"
	"liqonet.io/liqonet/netops"
)

// TestDesiredFirewalls validates the firewalls of the golden files with nft.
func TestDesiredFirewalls(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for name, state := range topology.Desired() {
		command := exec.CommandContext(t.Context(), "nsenter", "--net="+ns.Path(), "nft", "--check", "-f", "-")
		command.Stdin = strings.NewReader(firewallOf(netops.Diff(netops.State{}, state)).Plan.String())
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: nft refuses the transaction: %v\n%s", name, err, out)
		}
	}
}

// TestDesiredStates applies each of the states of the golden files to a kernel.
func TestDesiredStates(t *testing.T) {
	t.Parallel()
	for name, state := range topology.Desired() {
		t.Run(name, func(t *testing.T) {
			ns := newNamespace(t)
			ns.IP("link add " + netops.Tunnel + " type veth peer name eth0")
			ns.IP("link add " + netops.Tunnel + "1 type veth peer name far")
			ns.IP("link set far up")
			ns.IP("link set eth0 up")                // a nexthop requires a link with a carrier
			ns.IP("addr add 10.244.1.5/24 dev eth0") // the source of a route must be local
			for i, l := range state.Links {
				if l.Name == netops.Overlay {
					state.Links[i].Kind = overlays()[0]
				}
			}
			reach(t, ns.kernel(), state)
		})
	}
}

// firewallOf returns the firewall step of a plan.
func firewallOf(p netops.Plan) netops.Firewall {
	for _, s := range p.Steps {
		if f, ok := s.Object.(netops.Firewall); ok {
			return f
		}
	}
	return netops.Firewall{}
}
