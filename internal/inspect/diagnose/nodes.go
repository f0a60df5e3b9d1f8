package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// recent is how long drift causes a warning.
const recent = 10 * time.Minute

func nodeChecks() []Check {
	return []Check{
		{
			ID: "LQ-NODES-HELPER", What: "A helper runs on every Ready node.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "The image cannot be pulled, a quota or admission refuses the pods, or the helper crashes.",
			Fix:   "kubectl --context CONTEXT -n NAMESPACE get pods -o wide; kubectl --context CONTEXT -n NAMESPACE describe pod POD",
			reads: []fact{observe.Elsewhere, observe.Nodes, observe.Pods}, cluster: (*facts).helpersRun,
		},
		{
			ID: "LQ-NODES-REPORT", What: "Every node with a helper has a report in its Lease that can be read.",
			Needs: []string{"LQ-NODES-HELPER"},
			Cause: "The helper does not reach the API server, or another program edited the Lease.",
			Fix:   "Read the log of the helper on the node that is named: kubectl --context CONTEXT -n NAMESPACE logs POD",
			reads: []fact{observe.Leases, observe.Nodes, observe.Pods}, cluster: (*facts).nodesReport,
		},
		{
			ID:    "LQ-NODES-KERNEL",
			What:  "The kernel of every node has the overlay that the cluster uses (VXLAN or Geneve), and WireGuard where the peering asks for the kernel's.",
			Needs: []string{"LQ-NODES-REPORT"},
			Cause: "A node with another kernel joined, or a module was blocked.",
			Fix:   "Load the module on the nodes that are named (modprobe geneve, vxlan or wireguard), or use --overlay vxlan or --wireguard auto with --update.",
			reads: []fact{observe.Leases, observe.Records}, cluster: (*facts).kernels,
		},
		{
			ID: "LQ-NODES-FORWARD", What: "The kernels of nodes forward packets, and no firewall in them drops by default what is forwarded.",
			Needs: []string{"LQ-NODES-REPORT"},
			Cause: "Docker, ufw or another program set the policy of a chain at hook forward to drop. No other rule can undo that. " +
				"Or a hardened image or a file of /etc/sysctl.d sets net.ipv4.ip_forward to 0: pods of that node then reach nothing beyond it.",
			Fix: "For a chain: " + health.Update + " --allow-forward. See docs/troubleshooting.md, Firewalls on nodes. " +
				"For net.ipv4.ip_forward, on the node that is named: sysctl -w net.ipv4.ip_forward=1, and in /etc/sysctl.d what sets it to 0.",
			reads: []fact{observe.Leases, observe.Records}, cluster: (*facts).forwardDrops,
		},
		{
			ID: "LQ-NODES-PLUGIN", What: "The network plugin has no setting that is known to take packets past the kernel's routing and nftables.",
			Needs: []string{"LQ-API-REACHABLE"},
			Cause: "eBPF or Open vSwitch routes packets of pods before liqonet's rules see them.",
			Fix:   "Change the setting that is named. See docs/network-plugins.md.",
			reads: []fact{observe.Platform}, cluster: (*facts).pluginWarnings,
		},
		{
			ID: "LQ-NODES-DRIFT", What: "No other program has changed liqonet's kernel objects within ten minutes.",
			Cause: "Another program, such as a network plugin or a firewall, removes or changes links, routes or rules. The helper restores them within a second.",
			Fix:   "Find the program that changes what is named; the helpers' logs have each object and time.",
			reads: []fact{peerings}, side: (*side).drift,
		},
	}
}

func (f *facts) nodesReady() outcome {
	switch ready, notReady := f.NodeNames(); {
	case len(notReady) == 0:
		return passed()
	case len(ready) == 0:
		return failed("no node is Ready")
	default:
		return warned([]string{"not Ready: node " + strings.Join(notReady, ", ")})
	}
}

func (f *facts) helpersRun() outcome {
	ready, _ := f.NodeNames()
	without := slices.DeleteFunc(ready, func(name string) bool { return f.helped[name] })
	if len(without) == 0 {
		return passed()
	}
	return explained(failed("no helper is ready on node %s", strings.Join(without, ", ")), f.PodProblem(records.NodeName, templates.NodePods()))
}

// explained adds the reason for which a pod does not start to a failure.
func explained(o outcome, problem *kube.PodError) outcome {
	if problem == nil {
		return o
	}
	o.observed += ": " + problem.Error()
	return o.hinted(hint.Of(problem))
}

func (f *facts) nodesReport() outcome {
	missing := maps.Clone(f.helped)
	for _, n := range f.Reports {
		delete(missing, n.Name)
	}
	var seen []string
	if f.DamagedReports != "" {
		seen = append(seen, f.DamagedReports)
	}
	if len(missing) > 0 {
		seen = append(seen, "no report of node "+strings.Join(slices.Sorted(maps.Keys(missing)), ", "))
	}
	return judged(Failed, seen)
}

func (f *facts) kernels() outcome {
	if f.Fabric == nil {
		return skipped("there is no record of the installation that can be read")
	}
	var seen []string
	require := func(what string, has func(records.Capabilities) bool) {
		for _, n := range f.Reports {
			if !has(n.Kernel) {
				seen = append(seen, fmt.Sprintf("no %s on node %s (kernel %s)", what, n.Name, n.Kernel.Release))
			}
		}
	}
	switch f.Fabric.Overlay.Kind {
	case records.Geneve:
		require("Geneve", func(c records.Capabilities) bool { return c.Geneve })
	case records.VXLAN:
		require("VXLAN", func(c records.Capabilities) bool { return c.VXLAN })
	}
	if slices.ContainsFunc(slices.Collect(maps.Values(f.Peerings)), func(p *records.Peering) bool {
		return p != nil && *p.Settings.Complete().Implementation == records.Kernel
	}) {
		require("WireGuard", func(c records.Capabilities) bool { return c.WireGuard })
	}
	return judged(Failed, seen)
}

func (f *facts) forwardDrops() outcome {
	var seen []string
	advice := "" // that of the check
	for _, n := range f.Reports {
		if n.NotForwarding {
			seen = append(seen, fmt.Sprintf("node %s forwards no packets: net.ipv4.ip_forward is 0", n.Name))
			advice = "sysctl -w net.ipv4.ip_forward=1 on the node that is named; find what sets it to 0, such as a file of /etc/sysctl.d"
		}
		if f.Fabric != nil && f.Fabric.AllowForward {
			continue // the helpers add rules
		}
		for _, d := range n.ForwardDrops {
			seen = append(seen, fmt.Sprintf("%s of node %s drops", d, n.Name))
		}
	}
	// A chain may have rules for liqonet's packets, which this check does not parse: the state of the peerings decides.
	if len(f.peerings) > 0 && !slices.ContainsFunc(f.peerings, func(p status.Peering) bool { return p.State != health.Healthy }) {
		return warned(seen).hinted(advice)
	}
	return judged(Failed, seen).hinted(advice)
}

func (f *facts) pluginWarnings() outcome {
	state := Warning
	var seen, advice []string
	for _, w := range f.Platform.Warnings {
		seen, advice = append(seen, w.What), append(advice, w.Hint)
		if w.Breaks {
			state = Failed
		}
	}
	return judged(state, seen).hinted(strings.Join(advice, "; "))
}

func (s *side) refusals() outcome {
	var seen []string
	for _, n := range s.Reports {
		switch why, refused := n.Refused[s.status.Peer]; {
		case refused:
			seen = append(seen, fmt.Sprintf("node %s refuses: %s", n.Name, why))
		case s.helped[n.Name] && !slices.Contains(n.Peerings, s.status.Peer):
			seen = append(seen, fmt.Sprintf("node %s does not serve the peering", n.Name))
		}
	}
	return judged(Failed, seen)
}

func (s *side) drift() outcome {
	var seen []string
	add := func(where string, d records.Drift) {
		if d.Times > 0 && time.Since(d.Last) < recent {
			seen = append(seen, fmt.Sprintf("%s: changes restored: %d, last %s", where, d.Times, d.What))
		}
	}
	for _, n := range s.status.NodeStates() {
		add("node "+n.Name, n.Drift)
	}
	for _, g := range s.status.Gateways {
		add(fmt.Sprintf("gateway %d", g.Number), g.Drift)
	}
	return warned(seen)
}
