package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/desired"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// describeInstallation formats the answer of `network init` as text.
func describeInstallation(b *strings.Builder, r peering.InitResult) {
	if r.Changed {
		ui.Writef(b, "liqonet is installed in %s (%s)\n", r.Cluster.Name, stageTimes(r.Stages))
	} else {
		ui.Writef(b, "liqonet is already installed in %s: nothing changed\n", r.Cluster.Name)
	}
	c := r.Cluster
	ui.Writef(b, "\npod CIDRs: %s\nservice CIDRs: %s\nnode networks: %s\n", ui.List(c.PodCIDRs), ui.List(c.ServiceCIDRs), ui.List(c.NodeNetworks))
	ui.Writef(b, "external CIDR: %s, internal CIDR: %s\n", c.ExternalCIDR, c.InternalCIDR)
	ui.Writef(b, "overlay: %s on %s, MTU %d\n", c.Overlay, plan.Count(c.Nodes, "node"), c.MTU)
	describeUnverified(b, c.Name, r.Unverified)
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

// describeConnection formats the answer of `network connect` as text. again are the flags that select both clusters.
func describeConnection(b *strings.Builder, r peering.Connection, again string) {
	local, remote := r.Local, r.Remote
	unchanged := ""
	if !r.Changed {
		unchanged = ": nothing changed"
	}
	ui.Writef(b, "%s and %s are connected%s (%s)\n", local.Cluster.Name, remote.Cluster.Name, unchanged, ui.Seconds(time.Duration(r.Took)))
	rows := [][]string{{"  IN", "PODS OF", "ORIGINAL", "REACHED AT"}}
	verified, all := 0, 0
	for _, side := range []peering.SideResult{local, remote} {
		rows = append(rows, podRows(side)...)
		ok := verifiedNodes(side)
		verified, all = verified+ok, all+ok+len(side.Unverified)
	}
	_ = ui.Table(b, rows) // a strings.Builder takes everything
	encryption := ""
	if local.Proof.Implementation == records.Unencrypted {
		encryption = "; not encrypted"
	}
	ui.Writef(b, "verified: %d of %d nodes in both directions; MTU %d; %d + %d gateways%s\n",
		verified, all, r.MTU, 1+len(local.OtherGateways), 1+len(remote.OtherGateways), encryption)
	for _, h := range desired.Narrow(r.Hops) {
		ui.Writef(b, "bottleneck: %s, path MTU %d, allows an MTU of %d\n", h.Name, h.Size, h.Fits)
	}
	describeUnverified(b, local.Cluster.Name, local.Unverified)
	describeUnverified(b, remote.Cluster.Name, remote.Unverified)
	if r.Changed && verified == all {
		ui.Writef(b, "next: liqoctl network test %s\n", again)
	}
}

// podRows returns a row for each pod CIDR of the peer: where it is reached in one cluster.
func podRows(side peering.SideResult) (rows [][]string) {
	for _, m := range side.Addresses {
		if m.Kind != "pods" {
			continue
		}
		reached := m.ReachedAt.String()
		if m.Remapped() {
			reached += " (remapped)"
		}
		rows = append(rows, []string{"  " + side.Cluster.Name, side.Peering, m.Original.String(), reached})
	}
	return rows
}

// verifiedNodes counts the nodes of a cluster that all of its gateways have verified.
func verifiedNodes(side peering.SideResult) (n int) {
	for _, node := range side.Proof.Nodes {
		if !slices.ContainsFunc(side.Unverified, func(u peering.UnverifiedNode) bool { return u.Name == node.Name }) {
			n++
		}
	}
	return n
}

// describeConnectionWide adds to describeConnection what was verified by each gateway, and where the MTU comes from.
func describeConnectionWide(b *strings.Builder, r peering.Connection, again string) {
	describeConnection(b, r, again)
	fmt.Fprintln(b)
	describeAddresses(b, r.Local)
	describeAddresses(b, r.Remote)
	describeProof(b, r.Local, r.Remote)
	describeProof(b, r.Remote, r.Local)
	describeSizes(b, r)
	ui.Writef(b, "took: %s\n", stageTimes(r.Stages))
}

// describeAddresses writes the addresses of the peer's nodes and exposed hosts, as they are in one cluster.
func describeAddresses(b *strings.Builder, side peering.SideResult) {
	for _, m := range side.Addresses {
		if m.Kind == "external" {
			ui.Writef(b, "nodes and exposed hosts of %s: %s in %s\n", side.Peering, m.String(), side.Cluster.Name)
		}
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
		ui.Writef(b, "%s to %s%s: %s (MTU %d, %s, %s; between gateways %s, loss %s)\n", from.Cluster.Name, to.Cluster.Name, by,
			nodes, from.MTU, p.Overlay, driver(p.Implementation), ui.RoundTrip(time.Duration(p.RTT)), ui.Percent(p.Loss))
	}
}

// driver names what encrypts the packets.
func driver(i records.Implementation) string {
	if i == records.Unencrypted {
		return "not encrypted"
	}
	return string(i) + " WireGuard"
}

// describeSizes writes the largest packet size between pods, and the measurements that it comes from.
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
}

// mtuSources returns where the MTU of a peering comes from: the hops that allow no more.
func mtuSources(r peering.Connection) (lines []string) {
	least, what := desired.Narrowest(r.Hops), "MTU"
	if r.MTU != least {
		lines, what = append(lines, fmt.Sprintf("MTU %d: set by --mtu, or kept until all hops are measured", r.MTU)), "path allows"
	}
	for _, h := range r.Hops {
		if h.Fits != least || least == 0 {
			continue
		}
		node := ""
		if h.Node != "" {
			node = ", node " + h.Node
		}
		lines = append(lines, fmt.Sprintf("%s %d: %d %s%s, less %d bytes of headers", what, h.Fits, h.Size, h.Name, node, h.Size-h.Fits))
	}
	return lines
}

// withMTUSources makes connect report where the MTU comes from, if the user wants to know.
func withMTUSources(env *cli.Env, do cli.Operation[peering.ConnectOptions, peering.Connection]) cli.Operation[peering.ConnectOptions, peering.Connection] {
	return func(ctx context.Context, o peering.ConnectOptions, r progress.Reporter) (peering.Connection, error) {
		result, err := do(ctx, o, r)
		if err == nil && env.Verbose {
			for _, line := range mtuSources(result) {
				r.Note(line)
			}
		}
		return result, err
	}
}

// describeDisconnection formats the answer of `network disconnect` as text.
func describeDisconnection(b *strings.Builder, r removal.Disconnection) {
	for _, removal := range []*removal.Removed{r.Local, r.Remote} {
		if removal != nil {
			describeRemoval(b, *removal)
		}
	}
	if !r.Changed {
		fmt.Fprintln(b, "nothing changed")
	}
}

func describeRemoval(b *strings.Builder, r removal.Removed) {
	if len(r.Peerings) == 0 {
		ui.Writef(b, "%s: no such peering\n", r.Context)
		return
	}
	ui.Writef(b, "%s: peering %s removed", r.Context, strings.Join(r.Peerings, ", "))
	if len(r.Released) > 0 {
		ui.Writef(b, "; released %s", ui.Joined(r.Released, func(free removal.ReleasedRange) string { return free.Range.String() }))
	}
	fmt.Fprintln(b)
}

// grouped groups values by a key, in the order in which the keys appear.
func grouped[K comparable, V any](all []V, key func(V) K) (groups [][]V) {
	at := make(map[K]int)
	for _, v := range all {
		k := key(v)
		if _, known := at[k]; !known {
			at[k], groups = len(groups), append(groups, nil)
		}
		groups[at[k]] = append(groups[at[k]], v)
	}
	return groups
}

// appendNew appends a value, unless the list contains it.
func appendNew[T comparable](all []T, v T) []T {
	if slices.Contains(all, v) {
		return all
	}
	return append(all, v)
}

func stageTimes(stages []progress.StageTime) string {
	return ui.Joined(stages, func(s progress.StageTime) string { return s.Name + " " + ui.Seconds(time.Duration(s.Took)) })
}
