package peering

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/seconds"
)

// RotateOptions are the options of RotateKeys.
type RotateOptions struct {
	Local, Remote *kube.Cluster
	Peer          string // name of the peering in the local cluster; "": the peering with the remote cluster
	Timeout       time.Duration
}

// Rotation is the result of RotateKeys.
type Rotation struct {
	Peer     string               `json:"peer"` // name of the peering in the local cluster
	Gateways []NewKey             `json:"gateways"`
	Stages   []progress.StageTime `json:"stages"`
	Took     seconds.Duration     `json:"tookSeconds"`
	Objects  []kube.Change        `json:"objects"`
}

// NewKey is the new key of a gateway.
type NewKey struct {
	Cluster   string `json:"cluster"` // name of the cluster
	Gateway   int    `json:"gateway"` // number of the gateway
	PublicKey string `json:"publicKey"`
}

// RotateKeys gives every gateway of a peering a new key, one after the other. While one gateway drains, others carry
// its packets; the next one follows when packets cross with the new key. A cluster with one gateway has a temporary
// second one meanwhile. The preshared key stays: see decision 22. RotateKeys can be interrupted at any point and run
// again; it then replaces all keys once more.
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
	t.result.Took, t.result.Stages = seconds.Duration(time.Since(start)), t.stages.Times
	return t.result, err
}

// PlanRotateKeys returns the changes that RotateKeys would make. It changes nothing.
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
	for _, m := range d.members() {
		if m.gatewayCount() == 1 {
			t.reporter.Note(fmt.Sprintf("cluster %q: a second gateway carries its packets meanwhile", m.cluster.Context))
		}
		for i := range m.keys {
			if err := m.planKey(bounded, i); err != nil {
				return plan.Plan{}, err
			}
		}
		objects, err := m.gatewayObjects()
		if err == nil {
			err = m.applyGateways(bounded, objects)
		}
		if err != nil {
			return plan.Plan{}, err
		}
	}
	if err := d.exchange(bounded); err != nil {
		return plan.Plan{}, err
	}
	_, err = d.configure(bounded)
	return plan.Of(bounded, err, d.clusters()...)
}

// rotation is a running RotateKeys.
type rotation struct {
	options  RotateOptions
	stages   progress.Stages
	reporter progress.Reporter
	result   Rotation
	update   bool // the user has consented to changed CIDRs
	checked  bool // the rights are sufficient
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
	t.checked = true
	local, remote, name := t.options.Local.Context, t.options.Remote.Context, c.local.peering
	if t.options.Peer != "" && t.options.Peer != name {
		return "", &progress.InputError{
			Err:    fmt.Errorf("context %q is cluster %q, not peer %q", remote, name, t.options.Peer),
			Advice: "leave the name out, or choose another remote cluster",
		}
	}
	t.result.Peer = name
	return local + ", " + remote, nil
}

// connector returns a connect that does not change the peering's settings. With spare, members with one gateway get a
// second one, or keep it.
func (t *rotation) connector(ctx context.Context, spare bool) (*connector, error) {
	reporter := t.reporter
	if spare {
		reporter = progress.Quiet{} // the last connector reports what remains
	}
	c := newConnector(ConnectOptions{
		Local: Side{Cluster: t.options.Local}, Remote: Side{Cluster: t.options.Remote},
		Installation: Installation{Update: true, AllNodes: true},
	}, reporter)
	for _, m := range c.members() {
		m.installed = t.checked
	}
	if _, err := c.reach(ctx); err != nil {
		return nil, err
	}
	for _, m := range c.members() {
		fabric, err := inventory.Fabric(ctx, m.cluster)
		if err != nil {
			return nil, err
		}
		if fabric != nil { // its CIDRs are known
			m.side.Overrides = discover.Overrides{PodCIDRs: fabric.PodCIDRs, ServiceCIDRs: fabric.ServiceCIDRs, NodeNetworks: fabric.NodeNetworks}
		}
		m.options.SkipValidation, m.wanted.Spare = true, spare
	}
	if _, err := c.discover(ctx); err != nil {
		return nil, err
	}
	for _, m := range c.members() {
		if m.have == nil {
			return nil, hint.With(fmt.Errorf("cluster %q has no peering with cluster %q", m.cluster.Context, m.peer.Cluster.Name), "liqoctl network connect")
		}
		if err := m.checkPeerCIDRs(); err != nil && !t.update {
			return nil, err
		}
		var err error
		if m.options.Image, err = m.gatewayImage(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// checkPeerCIDRs rejects CIDRs of the peer that differ from those in the record. This cluster's packets to them would
// be sent to the peer, whose administrators could thus redirect any address by editing their own fabric.
func (m *member) checkPeerCIDRs() error {
	desired := *m.have
	desired.Peer.PodCIDRs, desired.Peer.ExternalCIDRs = m.addresses.Pods, m.addresses.External
	if sameCIDRs(desired.Peer, m.have.Peer) {
		return nil
	}
	return hint.With(plan.Overtaken(m.cluster, records.PeeringName(m.peering), *m.have, desired), "apply the changes with liqoctl network connect --update")
}

// sameCIDRs reports whether two peers have the same CIDRs, in any order: discovery sorts them.
func sameCIDRs(a, b records.Peer) bool {
	other := func(mapping records.Mapping) bool { return !slices.Contains(b.CIDRs(), mapping) }
	return len(a.PodCIDRs) == len(b.PodCIDRs) && !slices.ContainsFunc(a.CIDRs(), other)
}

// converge applies the connector's configuration, and verifies it.
func (t *rotation) converge(ctx context.Context, c *connector) (string, error) {
	following, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, m := range c.members() {
		go m.nodes.watch(following, m.cluster)
	}
	defer func() { t.result.Objects = slices.Concat(t.result.Objects, c.local.changes, c.remote.changes) }()
	if err := inOrder(ctx, c.prepare, c.configure, c.verify); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d gateways in %s, %d in %s", c.local.gatewayCount(), c.local.name, c.remote.gatewayCount(), c.remote.name), nil
}

// prepare starts missing gateways, and second ones in clusters with only one. It does not change existing gateways
// but those with other keys than their Secret: connect replaces those, one at a time.
func (t *rotation) prepare(ctx context.Context) (string, error) {
	c, err := t.connector(ctx, true)
	if err != nil {
		return "", err
	}
	for _, m := range c.members() {
		m.addOnly = true
	}
	return t.converge(ctx, c)
}

// replaceAll replaces the keys of all permanent gateways, one after the other.
func (t *rotation) replaceAll(ctx context.Context) (string, error) {
	for side := range 2 {
		for i := 0; ; i++ {
			c, err := t.connector(ctx, true)
			if err != nil {
				return "", err
			}
			m := c.members()[side]
			if i == m.half().PermanentGateways() {
				break
			}
			if err := m.replaceKey(ctx, i); err != nil {
				return "", fmt.Errorf("gateway %d of cluster %q: %w", i+1, m.cluster.Context, err)
			}
			if _, err := t.converge(ctx, c); err != nil {
				return "", err
			}
			t.reporter.Note(fmt.Sprintf("cluster %q: gateway %d has a new key", m.cluster.Context, i+1))
			t.result.Gateways = append(t.result.Gateways, NewKey{m.name, i + 1, m.keys[i].Public()})
		}
	}
	return fmt.Sprintf("%d new keys", len(t.result.Gateways)), nil
}

// finish removes second gateways, and verifies the others.
func (t *rotation) finish(ctx context.Context) (string, error) {
	c, err := t.connector(ctx, false)
	if err != nil {
		return "", err
	}
	return t.converge(ctx, c)
}

// replaceKey stores a new key for the gateway with number i+1. The next steps replace its pod, whose
// template names the old one, as they do after an earlier run that ended here.
func (m *member) replaceKey(ctx context.Context, i int) error {
	id := m.gatewayIDs()[i]
	if m.keys[i] == nil {
		return inventory.Conflict(m.cluster, "Secret", id.KeysName()) // prepare completed everything
	}
	if err := m.checkTerminating(ctx, id); err != nil {
		return err
	}
	k, err := inventory.NewKeys(m.keys[i].Preshared)
	if err != nil {
		return err
	}
	if err := m.storeKey(ctx, id, m.keys[i], k); err != nil {
		return err
	}
	m.keys[i] = &k
	return nil
}

// planKey plans a new key. The run that stores it generates another one.
func (m *member) planKey(ctx context.Context, i int) error {
	if m.keys[i] == nil {
		return nil // the run first completes it
	}
	err := m.replaceKey(ctx, i)
	m.keys[i], m.replaced[i] = nil, true
	return err
}

// checkTerminating rejects a gateway with a pod that does not terminate, as on a lost node: the pod may still use the
// key.
func (m *member) checkTerminating(ctx context.Context, id records.GatewayID) error {
	pods, err := kube.All[*corev1.Pod](ctx, m.cluster, inventory.GatewaySelector(id))
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

// gatewayImage returns the image of the existing gateways.
func (m *member) gatewayImage(ctx context.Context) (string, error) {
	for _, id := range m.have.GatewayIDs() {
		d, err := kube.Find[*appsv1.Deployment](ctx, m.cluster, id.Name())
		switch {
		case err != nil:
			return "", err
		// A missing Deployment is created later: an earlier run was interrupted before it.
		case d != nil && len(d.Spec.Template.Spec.Containers) > 0:
			return d.Spec.Template.Spec.Containers[0].Image, nil
		}
	}
	return "", hint.With(fmt.Errorf("cluster %q has no gateway of peering %q", m.cluster.Context, m.peering), "liqoctl network connect makes it again")
}
