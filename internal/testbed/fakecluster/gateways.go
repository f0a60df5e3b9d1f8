package fakecluster

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Gateways are the gateway pods of clusters, with the keys that each read when it started.
type Gateways struct {
	mu       sync.Mutex
	running  map[string]runningPod // by cluster, peering and number
	clusters map[string]*Cluster   // by context, which is the name
}

// runningPod is the pod of a gateway.
type runningPod struct {
	deployment types.UID
	key        string // in the template of its Deployment
	public     string
}

// RunGateways simulates the gateway pods of clusters: a tunnel works if both ends have the key of the other.
func RunGateways(all ...*Cluster) {
	gateways := &Gateways{running: make(map[string]runningPod), clusters: make(map[string]*Cluster)}
	for _, c := range all {
		c.gateways, gateways.clusters[c.Context] = gateways, c
	}
}

func podKey(cluster, peering string, number int) string {
	return fmt.Sprint(cluster, "/", peering, "/", number)
}

// start starts the pod of a Deployment, again if it is another Deployment or its template names other keys.
func (p *Gateways) start(ctx context.Context, c *kube.Cluster, id records.GatewayID, d *appsv1.Deployment) error {
	if p == nil {
		return nil
	}
	keys, err := inventory.ReadKeys(ctx, c, id)
	wanted := d.Spec.Template.Annotations[templates.AnnotationKey]
	if err != nil || keys.ID() != wanted { // it waits for its Secret
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := podKey(c.Context, id.Peering, id.Number)
	if pod := p.running[key]; pod.deployment != d.UID || pod.key != wanted {
		p.running[key] = runningPod{d.UID, wanted, fmt.Sprint(keys.Driver())}
	}
	return nil
}

// connected reports whether the gateway has a tunnel to each gateway of the peer: each has the key in the record of the
// other.
func (p *Gateways) connected(ctx context.Context, c *kube.Cluster, id records.GatewayID, record *records.Peering) (bool, error) {
	if p == nil || p.clusters[id.Peering] == nil {
		return true, nil
	}
	far, err := inventory.Record[records.Peering](ctx, p.clusters[id.Peering].Cluster, records.PeeringName(c.Context))
	if far == nil || err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range record.Gateways[id.Number-1].Tunnels {
		back, _ := far.Tunnel(i+1, id.Number)
		if p.running[podKey(id.Peering, c.Context, i+1)].public != fmt.Sprint(t.Driver) || p.running[podKey(c.Context, id.Peering, id.Number)].public != fmt.Sprint(back.Driver) {
			return false, nil
		}
	}
	return true, nil
}

// HasAllTunnels reports whether a gateway has a tunnel to each gateway of the peer.
func (h *Helpers) HasAllTunnels(ctx context.Context, id records.GatewayID, record *records.Peering) (bool, error) {
	return h.gateways.connected(ctx, h.Cluster, id, record)
}

// HasTunnel reports whether a gateway has a tunnel to any gateway of the peer. It makes no request: reactors cannot.
func (c *Cluster) HasTunnel(id records.GatewayID) bool {
	p := c.gateways
	far := p.clusters[id.Peering]
	own, back := storedPeering(c, id.Peering), storedPeering(far, c.Context)
	p.mu.Lock()
	defer p.mu.Unlock()
	public := p.stored(c, id)
	if public == "" || id.Number > len(own.Gateways) {
		return false
	}
	for i, t := range own.Gateways[id.Number-1].Tunnels {
		there, _ := back.Tunnel(i+1, id.Number)
		if fmt.Sprint(t.Driver) == p.stored(far, records.GatewayID{Peering: c.Context, Number: i + 1}) && fmt.Sprint(there.Driver) == public {
			return true
		}
	}
	return false
}

// stored returns the public key of the pod of a stored Deployment; "": no pod runs.
func (p *Gateways) stored(w *Cluster, id records.GatewayID) string {
	object, err := w.Fake.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("deployments"), w.Namespace, id.Name())
	running := p.running[podKey(w.Context, id.Peering, id.Number)]
	if err != nil {
		return ""
	}
	if d := object.(*appsv1.Deployment); d.UID != running.deployment || d.Spec.Template.Annotations[templates.AnnotationKey] != running.key {
		return ""
	}
	return running.public
}

// storedPeering returns the stored record of a peering; the zero value: there is none.
func storedPeering(w *Cluster, peering string) (p records.Peering) {
	object, err := w.Fake.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), w.Namespace, records.PeeringName(peering))
	if err == nil {
		p, err = records.Decode[records.Peering](object.(*corev1.ConfigMap).Data[records.DataKey])
	}
	if err != nil && !apierrors.IsNotFound(err) {
		panic(err)
	}
	return p
}
