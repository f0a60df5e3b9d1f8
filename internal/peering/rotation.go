package peering

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// RotateOptions are the options of RotateKeys.
type RotateOptions struct {
	Local, Remote  *kube.Cluster
	Peer           string // the peering's name in the local cluster; "": that with the remote cluster
	SkipValidation bool   // leaves out the check of the user's permissions
	Timeout        time.Duration
}

// Rotation is what RotateKeys did.
type Rotation struct {
	Peer     string               `json:"peer"` // as the local cluster calls it
	Gateways []NewKey             `json:"gateways"`
	Stages   []progress.StageTime `json:"stages"`
	Took     time.Duration        `json:"tookNanoseconds"`
	Objects  []kube.Change        `json:"objects"`
}

// NewKey is the new key of a gateway.
type NewKey struct {
	Cluster   string `json:"cluster"` // its name
	Gateway   int    `json:"gateway"` // its number
	PublicKey string `json:"publicKey"`
}

// RotateKeys gives every gateway of a peering a new key, one after the other: a gateway drains while others carry its
// packets, and the next one follows when packets were seen to cross with its new key. A side with one gateway has a
// second one meanwhile. The preshared key stays: see decision 22. It can be interrupted anywhere and run again: then
// all keys are replaced once more.
func RotateKeys(ctx context.Context, o RotateOptions, r progress.Reporter) (Rotation, error) {
	return plan.Locked(ctx, r, func(ctx context.Context) (Rotation, error) { return rotateKeys(ctx, o, r) }, &o.Local, &o.Remote)
}

func rotateKeys(ctx context.Context, o RotateOptions, r progress.Reporter) (Rotation, error) {
	start := time.Now()
	t := newRotation(o, r)
	bounded, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	const again = "run this again: it completes what was begun"
	err := t.stages.Run(bounded,
		progress.Step{Stage: progress.StageReach, Do: t.reach},
		progress.Step{Stage: progress.StageGateway, Hint: "see where packets get lost: liqoctl network status -o wide; then " + again, Do: t.prepare},
		progress.Step{Stage: progress.StageKeys, Hint: again, Do: t.replaceAll},
		progress.Step{Stage: progress.StageProof, Hint: again, Do: t.finish})
	t.result.Took, t.result.Stages = time.Since(start), t.stages.Times
	return t.result, err
}

// PlanRotateKeys returns what RotateKeys would change, and changes nothing.
func PlanRotateKeys(ctx context.Context, o RotateOptions, r progress.Reporter) (plan.Plan, error) {
	t := newRotation(o, progress.Planning(r))
	bounded, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	if _, err := t.reach(bounded); err != nil {
		return plan.Plan{}, err
	}
	c, err := t.connector(bounded, false)
	if err != nil {
		return plan.Plan{}, err
	}
	d := c.dry((*kube.Cluster).DryRun)
	for _, e := range d.ends() {
		if e.count() == 1 {
			t.reporter.Note(fmt.Sprintf("cluster %q: a second gateway carries its packets meanwhile", e.cluster.Context))
		}
		for i := range e.keys {
			if err := e.planKey(bounded, i); err != nil {
				return plan.Plan{}, err
			}
		}
	}
	_, err = d.configure(bounded)
	return plan.Of(bounded, err, d.local.cluster, d.remote.cluster)
}

// rotation is a RotateKeys on its way.
type rotation struct {
	options  RotateOptions
	stages   progress.Stages
	reporter progress.Reporter
	result   Rotation
	update   bool // the user has agreed to other CIDRs of the clusters
}

func newRotation(o RotateOptions, r progress.Reporter) *rotation {
	return &rotation{options: o, reporter: r, stages: progress.Stages{Reporter: r}}
}

// reach finds the peering in both clusters.
func (t *rotation) reach(ctx context.Context) (string, error) {
	c, err := t.connector(ctx, true)
	if err != nil {
		return "", err
	}
	t.options.SkipValidation = true // permissions were checked
	local, remote, name := t.options.Local.Context, t.options.Remote.Context, c.local.peering
	if t.options.Peer != "" && t.options.Peer != name {
		return "", &progress.InputError{
			Err:    fmt.Errorf("cluster %q is not peer %q of cluster %q: that has the name %q", remote, t.options.Peer, local, name),
			Advice: "leave the name out, or choose another remote cluster",
		}
	}
	t.result.Peer = name
	return local + ", " + remote, nil
}

// connector is a connect that leaves the peering as it is. With spare, sides with one gateway get a second one, or keep
// it.
func (t *rotation) connector(ctx context.Context, spare bool) (*connector, error) {
	reporter := t.reporter
	if spare {
		reporter = progress.Quiet{} // the last run says what is left
	}
	c := newConnector(ConnectOptions{
		Local: Side{Cluster: t.options.Local}, Remote: Side{Cluster: t.options.Remote},
		Installation: Installation{Update: true, SkipValidation: t.options.SkipValidation, AllNodes: true},
	}, reporter)
	if _, err := c.reach(ctx); err != nil {
		return nil, err
	}
	for _, e := range c.ends() {
		fabric, err := inventory.Fabric(ctx, e.cluster)
		if err != nil {
			return nil, err
		}
		if fabric != nil { // its ranges are known
			e.side.Overrides = discover.Overrides{PodCIDRs: fabric.PodCIDRs, ServiceCIDRs: fabric.ServiceCIDRs, NodeNetworks: fabric.NodeNetworks}
		}
		e.options.SkipValidation, e.spare = true, spare
	}
	if _, err := c.discover(ctx); err != nil {
		return nil, err
	}
	for _, e := range c.ends() {
		if e.have == nil {
			return nil, hint.With(fmt.Errorf("cluster %q has no peering with cluster %q", e.cluster.Context, e.peer.cluster.Context), "liqoctl network connect")
		}
		if err := e.checkAgreed(); err != nil && !t.update {
			return nil, err
		}
		var err error
		if e.options.Image, err = e.gatewayImage(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkAgreed refuses CIDRs of the peer other than those of the record: this cluster's packets to them would go to the
// peer, and so its administrators could redirect any address by their own fabric.
func (e *end) checkAgreed() error {
	wanted := *e.have
	wanted.Peer.PodCIDRs, wanted.Peer.ExternalCIDR = e.addresses.Pods, e.addresses.External
	if sameCIDRs(wanted.Peer, e.have.Peer) {
		return nil
	}
	return hint.With(plan.Overtaken(e.cluster, records.PeeringName(e.peering), *e.have, wanted), "apply the changes with liqoctl network connect --update")
}

// sameCIDRs reports whether a record's peer has the same ranges as another's, in any order: discovery sorts them.
func sameCIDRs(a, b records.Peer) bool {
	other := func(m records.Mapping) bool { return !slices.Contains(b.CIDRs(), m) }
	return len(a.PodCIDRs) == len(b.PodCIDRs) && !slices.ContainsFunc(a.CIDRs(), other)
}

// add starts the gateways that are missing, and leaves those that stand alone: connect replaces them, one at a time.
func (t *rotation) add(ctx context.Context, c *connector) (string, error) {
	for _, e := range c.ends() {
		e.adding = true
	}
	return t.converge(ctx, c)
}

// converge completes what the connector is for, and verifies it.
func (t *rotation) converge(ctx context.Context, c *connector) (string, error) {
	following, end := context.WithCancel(ctx)
	defer end()
	for _, e := range c.ends() {
		go e.nodes.follow(following, e.cluster)
	}
	defer func() { t.result.Objects = slices.Concat(t.result.Objects, c.local.changes, c.remote.changes) }()
	for _, do := range []func(context.Context) (string, error){c.prepare, c.configure, c.prove} {
		if _, err := do(ctx); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d gateways in %s, %d in %s", c.local.count(), c.local.name, c.remote.count(), c.remote.name), nil
}

// prepare completes what stands, with second gateways where there is one.
func (t *rotation) prepare(ctx context.Context) (string, error) {
	c, err := t.connector(ctx, true)
	if err != nil {
		return "", err
	}
	return t.add(ctx, c)
}

// replaceAll replaces the keys of all gateways that stay, one after the other.
func (t *rotation) replaceAll(ctx context.Context) (string, error) {
	for side := range 2 {
		for i := 0; ; i++ {
			c, err := t.connector(ctx, true)
			if err != nil {
				return "", err
			}
			e := c.ends()[side]
			if i == e.lasting() {
				break
			}
			if err := e.replaceKey(ctx, i); err != nil {
				return "", fmt.Errorf("gateway %d of cluster %q: %w", i+1, e.cluster.Context, err)
			}
			if _, err := t.converge(ctx, c); err != nil {
				return "", err
			}
			t.reporter.Note(fmt.Sprintf("cluster %q: gateway %d has a new key", e.cluster.Context, i+1))
			t.result.Gateways = append(t.result.Gateways, NewKey{e.name, i + 1, e.keys[i].Public()})
		}
	}
	return fmt.Sprintf("%d new keys", len(t.result.Gateways)), nil
}

// finish removes second gateways, and verifies the rest.
func (t *rotation) finish(ctx context.Context) (string, error) {
	c, err := t.connector(ctx, false)
	if err != nil {
		return "", err
	}
	return t.converge(ctx, c)
}

// replaceKey stores a new key for the gateway of number i+1. What follows has the gateway start anew, as where an
// earlier run ended here: see known.
func (e *end) replaceKey(ctx context.Context, i int) error {
	id := e.gatewayIDs()[i]
	if e.keys[i] == nil || !e.known(i) {
		return inventory.Conflict(e.cluster, "Secret", id.KeysName()) // all was complete before
	}
	if err := e.checkEnding(ctx, id); err != nil {
		return err
	}
	k, err := inventory.NewKeys(e.keys[i].Preshared)
	if err != nil {
		return err
	}
	if err := e.putKey(ctx, id, e.keys[i], k); err != nil {
		return err
	}
	e.keys[i] = &k
	return nil
}

// planKey plans a new key. The run that stores it makes another one.
func (e *end) planKey(ctx context.Context, i int) error {
	if e.keys[i] == nil || !e.known(i) {
		return nil // the run completes it first
	}
	err := e.replaceKey(ctx, i)
	e.keys[i], e.rekeyed[i] = nil, true
	return err
}

// checkEnding refuses a gateway with a pod that does not end, as on a lost node: nobody could say whether it still has
// the key.
func (e *end) checkEnding(ctx context.Context, id records.GatewayID) error {
	pods, err := kube.All[*corev1.Pod](ctx, e.cluster, inventory.GatewaySelector(id))
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.DeletionTimestamp != nil && p.DeletionTimestamp.Time.Before(time.Now()) {
			return hint.With(fmt.Errorf("pod %s on node %s does not end", p.Name, p.Spec.NodeName), lostNodeHint)
		}
	}
	return nil
}
