package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/require"
)

// snapshot is all state of a cluster that liqonet could change, as text by place and kind: every network namespace of
// its nodes, and every object of its API server.
type snapshot map[string]string

// namespaces prints, for the network namespace of a node and those of its pods, what is configured there. Of
// neighbours, only permanent ones count; of connections, only those with addresses in ranges of a peer, because all
// others change with any packet.
const namespaces = `look() {
	echo "== links"; ip -o link
	echo "== addresses"; ip -o addr
	echo "== nexthops"; ip nexthop
	echo "== routes"; ip route show table all; ip -6 route show table all
	echo "== rules"; ip rule; ip -6 rule
	echo "== neighbours"; ip neigh show nud permanent
	echo "== sysctls"; grep -rs . /proc/sys/net | sort
	echo "== nftables"; nft -s -j list ruleset
	echo "== connections"; cat /proc/net/nf_conntrack
}
if [ "$1" = look ]; then look; exit; fi
echo "= node"; look
for n in /var/run/netns/*; do echo "= $n"; nsenter --net="$n" sh "$0" look; done`

// kubeProxy is its table of nftables.
const kubeProxy = "kube-proxy"

// restless are entries of /proc/sys that are counters.
var restless = regexp.MustCompile(`^/proc/sys/net/netfilter/nf_conntrack_count:`)

// take returns a cluster's snapshot. Connections count that have an address in one of the ranges.
func take(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, ranges []netip.Prefix) snapshot {
	t.Helper()
	s := make(snapshot)
	for _, node := range nodesOf(ctx, t, l, cluster) {
		const script = `f=$(mktemp); printf '%s' "$1" > "$f"; sh "$f"; rm "$f"`
		out, err := l.NodeExec(ctx, node, "sh", "-c", script, "sh", namespaces)
		require.NoError(t, err)
		s.addNode(t, node, string(out), ranges)
	}
	s.addObjects(ctx, t, l, cluster)
	return s
}

func (s snapshot) addNode(t *testing.T, node, text string, ranges []netip.Prefix) {
	t.Helper()
	for namespace := range strings.SplitSeq(text, "\n= ") {
		name, sections, _ := strings.Cut(namespace, "\n")
		for section := range strings.SplitSeq(sections, "== ") {
			kind, lines, _ := strings.Cut(section, "\n")
			switch kind {
			case "":
				continue
			case "nftables":
				lines = rulesetText(t, lines)
			case "connections":
				lines = only(lines, func(line string) bool { return connects(line, ranges) })
			case "sysctls":
				lines = only(lines, func(line string) bool { return !restless.MatchString(line) })
			}
			s[fmt.Sprintf("%s, %s: %s", node, strings.TrimPrefix(name, "= "), kind)] = lines
		}
	}
}

// only returns the lines that keep chooses.
func only(text string, keep func(string) bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if keep(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// connects reports whether a line of nf_conntrack has an address in one of the ranges.
func connects(line string, ranges []netip.Prefix) bool {
	for word := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(word, "=")
		if name != "src" && name != "dst" {
			continue
		}
		a, err := netip.ParseAddr(value)
		if err == nil && slices.ContainsFunc(ranges, func(r netip.Prefix) bool { return r.Contains(a) }) {
			return true
		}
	}
	return false
}

// rulesetText is what nft -j prints, one object a line, without handles; elements of sets have no order. Chains that
// have no rule are left out of kube-proxy's table: it empties those of a Service that is gone, and removes them later.
func rulesetText(t *testing.T, text string) string {
	t.Helper()
	var all struct {
		Nftables []map[string]map[string]any
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	ruled := make(map[any]bool)
	for _, object := range all.Nftables {
		if rule := object["rule"]; rule != nil && rule["table"] == kubeProxy {
			ruled[rule["chain"]] = true
		}
	}
	var b strings.Builder
	for _, object := range all.Nftables {
		if chain := object["chain"]; chain != nil && chain["table"] == kubeProxy && !ruled[chain["name"]] {
			continue
		}
		for _, fields := range object {
			delete(fields, "handle")
			if elements, ok := fields["elem"].([]any); ok {
				slices.SortFunc(elements, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
		line, err := json.Marshal(object)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// addObjects adds every object of every kind, without what changes by itself.
func (s snapshot) addObjects(ctx context.Context, t *testing.T, l *lab.Lab, cluster string) {
	t.Helper()
	var kinds []string
	for kind := range strings.FieldsSeq(kubectl(ctx, t, l, cluster, "api-resources", "--verbs=list", "-o", "name")) {
		switch kind {
		case "events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses":
		default:
			kinds = append(kinds, kind)
		}
	}
	var all struct{ Items []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(kubectl(ctx, t, l, cluster, "get", strings.Join(kinds, ","), "-A", "-o", "json")), &all))
	for _, object := range all.Items {
		metadata := object["metadata"].(map[string]any)
		delete(metadata, "resourceVersion")
		delete(metadata, "managedFields")
		settle(object)
		text, err := json.MarshalIndent(object, "", " ")
		require.NoError(t, err)
		s[fmt.Sprintf("%s, %v %v/%v", cluster, object["kind"], metadata["namespace"], metadata["name"])] = string(text)
	}
}

// settle removes fields that kubelets write periodically: heartbeats, image lists, effective limits of pods. The times
// of conditions of nodes and pods change if a busy machine is too slow for a heartbeat.
func settle(object map[string]any) {
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	times := func() {
		for _, condition := range conditions {
			delete(condition.(map[string]any), "lastHeartbeatTime")
			delete(condition.(map[string]any), "lastTransitionTime")
		}
	}
	switch object["kind"] {
	case "Node":
		times()
		delete(status, "images")
	case "Pod":
		times()
		delete(status, "resources")
		for _, container := range status["containerStatuses"].([]any) {
			delete(container.(map[string]any), "resources")
		}
	}
}

// takeSettled waits until the snapshot of a cluster no longer changes.
func takeSettled(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, ranges []netip.Prefix) snapshot {
	t.Helper()
	var last, now snapshot
	await(ctx, t, func() bool {
		last, now = now, take(ctx, t, l, cluster, ranges)
		return cmp.Equal(last, now)
	}, func() string { return "cluster " + cluster + " does not come to rest:\n" + cmp.Diff(last, now) })
	return now
}

// awaitAsBefore waits until a cluster is as it was: kube-proxy removes its rules for a Service that is gone, and links
// of pods go, in their own time.
func awaitAsBefore(ctx context.Context, t *testing.T, l *lab.Lab, cluster string, before snapshot, ranges []netip.Prefix) {
	t.Helper()
	var now snapshot
	await(ctx, t, func() bool {
		now = take(ctx, t, l, cluster, ranges)
		return cmp.Equal(before, now)
	}, func() string { return "cluster " + cluster + " before and after:\n" + cmp.Diff(before, now) })
}
