package faults

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/faults/flows"
)

//go:embed targets.yaml
var targets string

// Parameters of random faults.
const (
	RandomGateways = 3
	powerless      = 20 * time.Second
	stalledMost    = 500 * time.Millisecond // of the sender; a fault during which it stalled for longer is repeated
	repeatsMost    = 2
)

// RandomKind is a kind of random faults. A fault ends by itself, or is undone, before begin returns.
type RandomKind struct {
	Name, What string
	begin      func(ctx context.Context, b *Bed, at place) error
}

// RandomKinds are all kinds, in the order of the table.
func RandomKinds() []RandomKind {
	return []RandomKind{
		{"pod", "a gateway's pod deleted", func(ctx context.Context, b *Bed, at place) error {
			return b.kubectl(ctx, at.cluster, "-n", "liqonet", "delete", "pod", at.gateway.Metadata.Name, "--wait=false")
		}},
		{"gateway", "a gateway's helper ended by SIGKILL", func(_ context.Context, _ *Bed, at place) error {
			return signal(at.gateway, syscall.SIGKILL)
		}},
		{"node", "a node's helper ended by SIGKILL", func(_ context.Context, _ *Bed, at place) error {
			return signal(at.helper, syscall.SIGKILL)
		}},
		{"uplink", "a node's uplink cut for 5 to 20 s", func(ctx context.Context, b *Bed, at place) error {
			return cut(ctx, b, at.hit, at.during, func() error { return nil })
		}},
		{"links-gateway", "liqonet's links of a gateway set down", inGateway(downLinks)},
		{"links-node", "liqonet's links of a node set down", onNode(downLinks)},
		{"tables-gateway", "liqonet's nftables tables of a gateway flushed", inGateway(flushTables)},
		{"tables-node", "liqonet's nftables tables of a node flushed", onNode(flushTables)},
		{"power", "a node without power for 20 s", func(ctx context.Context, b *Bed, at place) error {
			if err := b.Lab.KillNode(ctx, at.hit); err != nil {
				return err
			}
			return errors.Join(pause(ctx, powerless), b.Lab.StartNode(context.WithoutCancel(ctx), at.hit))
		}},
	}
}

// Shell commands of random faults. Each fails if there is nothing of liqonet's to change.
const (
	downLinks = `links=$(ip -o link | grep -o 'lqn-[^:@ ]*' | sort -u)
[ -n "$links" ]
for l in $links; do ip link set "$l" down; done`
	flushTables = `tables=$(nft list tables | grep -w liqonet)
echo "$tables" | while read -r _ family name; do nft flush table "$family" "$name"; done`
)

func onNode(script string) func(context.Context, *Bed, place) error {
	return func(ctx context.Context, b *Bed, at place) error {
		_, err := b.Lab.NodeExec(ctx, at.helper.Spec.NodeName, "sh", "-ec", script)
		return err
	}
}

func inGateway(script string) func(context.Context, *Bed, place) error {
	return func(ctx context.Context, _ *Bed, at place) error {
		pids, err := helpers(at.gateway)
		if err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, "nsenter", "-t", strconv.Itoa(pids[0]), "-n", "sh", "-ec", script).CombinedOutput()
		if err != nil {
			return fmt.Errorf("in pod %s: %w: %s", at.gateway.Metadata.Name, err, out)
		}
		return nil
	}
}

// place is where a random fault strikes.
type place struct {
	cluster string
	gateway pod           // any of the cluster
	helper  pod           // of any node of the cluster
	hit     string        // the node of a gateway, but not the one whose pods measure
	during  time.Duration // of an uplink's cut
}

// measuring is the name of a cluster's node whose pods measure. It keeps its power and its uplink.
func measuring(cluster string) string { return fmt.Sprintf("%s-%d", cluster, nodes) }

// place chooses where a fault strikes. Names of pods begin with those of their gateways, so that a seed selects the
// same gateways in each run.
func (b *Bed) place(ctx context.Context, r *rand.Rand) (place, error) {
	at := place{cluster: []string{client, server}[r.IntN(2)], during: 5*time.Second + time.Duration(r.Int64N(int64(15*time.Second)))}
	of := func(component string) ([]pod, error) {
		all, err := b.pods(ctx, at.cluster, "liqonet", "liqonet.io/component="+component)
		all = slices.DeleteFunc(all, func(p pod) bool { return p.Status.Phase != "Running" || p.Metadata.DeletionTimestamp != "" })
		slices.SortFunc(all, func(p, q pod) int { return strings.Compare(p.Metadata.Name, q.Metadata.Name) })
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("cluster %s: no pod of component %s runs", at.cluster, component)
		}
		return all, err
	}
	gateways, err := of("gateway")
	if err != nil {
		return at, err
	}
	all, err := of("fabric")
	if err != nil {
		return at, err
	}
	slices.SortFunc(all, func(p, q pod) int { return strings.Compare(p.Spec.NodeName, q.Spec.NodeName) })
	at.gateway, at.helper = gateways[r.IntN(len(gateways))], all[r.IntN(len(all))]
	usable := slices.DeleteFunc(gateways, func(p pod) bool { return p.Spec.NodeName == measuring(at.cluster) })
	if len(usable) == 0 {
		return at, fmt.Errorf("cluster %s: all gateways run on node %s, whose pods measure", at.cluster, measuring(at.cluster))
	}
	at.hit = usable[r.IntN(len(usable))].Spec.NodeName
	return at, nil
}

// RandomSample is the result of one random fault.
type RandomSample struct {
	Sample
	// Repeated is how often the fault was repeated because the sender had stalled. What such a run lost is not counted;
	// streams that it broke are.
	Repeated int
}

// Random causes random faults, one at a time, until a time has passed: in rounds, of which each has every kind once, in
// a random order. After each fault it waits until all is healthy. Streams last from the first fault to the last. It
// passes each sample to add.
func (b *Bed) Random(ctx context.Context, seed uint64, during time.Duration, add func(RandomSample)) (err error) {
	p, err := b.randomProber(ctx)
	if err != nil {
		return err
	}
	if _, err := p.request(ctx, b.Lab, "/begin?"+url.Values{"to": p.targets, "streams": {"1"}}.Encode()); err != nil {
		return err
	}
	defer func() {
		_, ended := p.end(context.WithoutCancel(ctx), b.Lab)
		err = errors.Join(err, ended)
	}()
	states, stop := b.recordStates(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	began, kinds := time.Now(), RandomKinds()
	for n := uint64(0); ; n++ {
		turn := int(n % uint64(len(kinds)))
		if turn == 0 {
			source(seed, n).Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		}
		if n > 0 && time.Since(began) >= during {
			return nil
		}
		s, err := b.randomFault(ctx, kinds[turn], p, states, func() *rand.Rand { return source(seed, n) })
		if err != nil {
			return fmt.Errorf("random fault %s, number %d of seed %d: %w", kinds[turn].Name, n, seed, err)
		}
		add(s)
	}
}

// source selects what the nth fault of a seed is, and where it strikes.
func source(seed, n uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, n)) //nolint:gosec // it selects faults
}

// randomFault causes one fault, and again where the sender stalled.
func (b *Bed) randomFault(ctx context.Context, k RandomKind, p prober, states *states, choice func() *rand.Rand) (RandomSample, error) {
	broken := 0
	for repeated := 0; ; repeated++ {
		s, err := b.strike(ctx, k, p, states, choice())
		s.Broken += broken
		if err != nil || s.Stalled <= stalledMost || repeated == repeatsMost {
			return RandomSample{s, repeated}, err
		}
		broken = s.Broken
	}
}

// strike causes one fault and waits until all is healthy.
func (b *Bed) strike(ctx context.Context, k RandomKind, p prober, states *states, r *rand.Rand) (Sample, error) {
	s := Sample{Fault: k.Name}
	if _, err := states.healthySince(ctx, time.Time{}, settled); err != nil {
		return s, err
	}
	if _, err := p.lap(ctx, b.Lab); err != nil { // what was lost while nothing was wrong is not the fault's
		return s, err
	}
	at, err := b.place(ctx, r)
	if err != nil {
		return s, err
	}
	began := time.Now()
	s.At = began.UTC().Truncate(time.Second)
	if err := k.begin(ctx, b, at); err != nil {
		return s, err
	}
	healed, err := states.healthySince(ctx, began, settled)
	if err != nil {
		return s, err
	}
	s.Healed, s.Turned = healed.Sub(began), states.turned(began)
	if err := b.await(ctx); err != nil {
		return s, err
	}
	results, err := p.lap(ctx, b.Lab)
	for _, r := range results {
		s.add(r)
	}
	return s, err
}

// add adds the result of a path: counts are summed, durations are the longest.
func (s *Sample) add(r flows.Result) {
	lost, sent, gone, losses := s.Lost+r.Lost, s.Sent+r.Sent, s.Gone+r.Gone, append(s.Losses, r.Losses...)
	s.worst(r)
	s.Lost, s.Sent, s.Gone, s.Losses = lost, sent, gone, losses
}

// randomProber starts the pods that answer and returns the one that asks.
func (b *Bed) randomProber(ctx context.Context) (prober, error) {
	apply, err := b.Lab.KubectlCommand(ctx, server, "apply", "-f", "-")
	if err != nil {
		return prober{}, err
	}
	apply.Stdin = strings.NewReader(strings.ReplaceAll(targets, "NODE", measuring(server)))
	if out, err := apply.CombinedOutput(); err != nil {
		return prober{}, fmt.Errorf("%v: %w: %s", apply.Args, err, out)
	}
	if err := b.kubectl(ctx, server, "rollout", "status", "deployment/targets", "--timeout=5m"); err != nil {
		return prober{}, err
	}
	answering, err := b.pods(ctx, server, "default", "app=targets")
	if err != nil {
		return prober{}, err
	}
	asking, err := b.pods(ctx, client, "default", "app=probe")
	if err != nil {
		return prober{}, err
	}
	i := slices.IndexFunc(asking, func(p pod) bool { return p.Spec.NodeName == measuring(client) })
	if i < 0 {
		return prober{}, fmt.Errorf("no pod that measures on node %s", measuring(client))
	}
	p := prober{node: asking[i].Spec.NodeName, ip: asking[i].Status.PodIP}
	for _, to := range answering {
		seen, err := b.liqoctl(ctx, "ipam", "translate", "--context", client, "--from", server, to.Status.PodIP)
		if err != nil {
			return prober{}, err
		}
		p.targets = append(p.targets, strings.TrimSpace(string(seen)))
	}
	return p, nil
}

// lap returns the results since the last lap.
func (p prober) lap(ctx context.Context, l *lab.Lab) ([]flows.Result, error) {
	out, err := p.request(ctx, l, "/lap")
	if err != nil {
		return nil, err
	}
	var results []flows.Result
	err = json.Unmarshal(out, &results)
	return results, err
}
