package network

import (
	"fmt"
	"strings"
	"time"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
)

// describeInstallation formats the answer of `network init` as text.
func describeInstallation(r peering.InitResult) string {
	var b strings.Builder
	if r.Changed {
		ui.Writef(&b, "liqonet is installed in %s (%s)\n", r.Cluster.Name, stageTimes(r.Stages))
	} else {
		ui.Writef(&b, "liqonet is already installed in %s: nothing changed\n", r.Cluster.Name)
	}
	c := r.Cluster
	ui.Writef(&b, "\npod CIDRs: %s\nservice CIDRs: %s\nnode networks: %s\n", ui.List(c.PodCIDRs), ui.List(c.ServiceCIDRs), ui.List(c.NodeNetworks))
	ui.Writef(&b, "external CIDR: %s, internal CIDR: %s\n", c.ExternalCIDR, c.InternalCIDR)
	ui.Writef(&b, "overlay: %s on %d nodes, MTU %d\n", c.Overlay, c.Nodes, c.MTU)
	describeUnverified(&b, c.Name, r.Unverified)
	return b.String()
}

// describeUnverified writes the unverified nodes of a cluster, with the reason.
func describeUnverified(b *strings.Builder, cluster string, nodes []peering.UnverifiedNode) {
	for _, n := range nodes {
		ui.Writef(b, "not verified: node %s of %s: %s\n", n.Name, cluster, n.Reason)
	}
}

// verifiedAll returns an error if there are unverified nodes. Nothing is rolled back: the other nodes are verified.
func verifiedAll(nodes ...peering.UnverifiedNode) error {
	if len(nodes) == 0 {
		return nil
	}
	return hint.With(cli.ErrUnverified, "they take part as soon as their helpers work; see liqoctl network status -o wide")
}

// describeConnection formats the answer of `network connect` as text: the verification, and the address map.
func describeConnection(r peering.Connection) string {
	var b strings.Builder
	local, remote := r.Local, r.Remote
	if r.Changed {
		ui.Writef(&b, "%s and %s are connected\n", local.Cluster.Name, remote.Cluster.Name)
	} else {
		ui.Writef(&b, "%s and %s are already connected: nothing changed\n", local.Cluster.Name, remote.Cluster.Name)
	}
	fmt.Fprintln(&b)
	describeAddresses(&b, local)
	describeAddresses(&b, remote)
	fmt.Fprintln(&b, "\nverified with full-size packets, from each node to the peer and back:")
	describeProof(&b, local, remote)
	describeProof(&b, remote, local)
	describeUnverified(&b, local.Cluster.Name, local.Unverified)
	describeUnverified(&b, remote.Cluster.Name, remote.Unverified)
	fmt.Fprintln(&b)
	describeSizes(&b, r)
	ui.Writef(&b, "\ntook %s: %s\n", ui.Seconds(time.Duration(r.Took)), stageTimes(r.Stages))
	return b.String()
}

// describeAddresses writes the addresses of the peer as they are in one cluster.
func describeAddresses(b *strings.Builder, side peering.SideResult) {
	for _, m := range side.Addresses {
		what, remapped := m.Kind, "not remapped"
		if what == "external" {
			what = "external CIDR"
		}
		if m.Remapped() {
			remapped = "remapped to " + m.ReachedAt.String()
		}
		ui.Writef(b, "%s of %s: %s, %s in %s\n", what, side.Peering, m.Original, remapped, side.Cluster.Name)
	}
}

// describeProof writes the verification from one cluster to the other, for each gateway.
func describeProof(b *strings.Builder, from, to peering.SideResult) {
	proofs := []peering.Proof{from.Proof}
	for _, g := range from.OtherGateways {
		proofs = append(proofs, g.Proof)
	}
	for i, p := range proofs {
		by := ""
		if len(proofs) > 1 {
			by = fmt.Sprintf(" by gateway %d", i+1)
		}
		nodes := ui.Joined(p.Nodes, func(n peering.NodeProof) string { return n.Name + " " + ui.RoundTrip(time.Duration(n.RTT)) })
		ui.Writef(b, "  %s to %s%s: %s (MTU %d, %s, %s WireGuard; between gateways %s, loss %s)\n", from.Cluster.Name, to.Cluster.Name, by,
			nodes, from.MTU, p.Overlay, p.Implementation, ui.RoundTrip(time.Duration(p.RTT)), ui.Percent(p.Loss))
	}
}

// describeSizes writes the largest packet size between pods, and what limits it.
func describeSizes(b *strings.Builder, r peering.Connection) {
	var measured, links []string
	for _, h := range r.Hops {
		size := fmt.Sprintf("%d %s", h.Size, h.Name)
		switch {
		case h.Link:
			links = append(links, size)
		case h.Size > 0:
			measured = append(measured, size)
		default:
			measured = append(measured, "no answer "+h.Name)
		}
	}
	ui.Writef(b, "MTU %d: measured %s; %s\n", r.MTU, strings.Join(measured, ", "), strings.Join(links, ", "))
	for _, h := range desired.Narrow(r.Hops) {
		ui.Writef(b, "  bottleneck: %s, path MTU %d, allows an MTU of %d\n", h.Name, h.Size, h.Fits)
	}
}

// describeDisconnection formats the answer of `network disconnect` as text.
func describeDisconnection(r removal.Disconnection) string {
	var b strings.Builder
	for _, removal := range []*removal.Removed{r.Local, r.Remote} {
		if removal != nil {
			describeRemoval(&b, *removal)
		}
	}
	if !r.Changed {
		fmt.Fprintln(&b, "nothing changed")
	}
	return b.String()
}

func describeRemoval(b *strings.Builder, r removal.Removed) {
	if len(r.Peerings) == 0 {
		ui.Writef(b, "%s: no such peering\n", r.Context)
		return
	}
	ui.Writef(b, "%s: peering with %s removed\n", r.Context, strings.Join(r.Peerings, ", "))
	for _, free := range r.Released {
		ui.Writef(b, "%s: %s released (%s)\n", r.Context, free.Range, free.Use)
	}
}

func stageTimes(stages []progress.StageTime) string {
	return ui.Joined(stages, func(s progress.StageTime) string { return s.Name + " " + ui.Seconds(time.Duration(s.Took)) })
}
