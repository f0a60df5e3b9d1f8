package peering

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
)

// pods are those of the gateways of two worlds, with the keys that each has read when it started: nil where they are
// not played.
type pods struct {
	mu      sync.Mutex
	running map[string]runningPod // by cluster, peering and number
	worlds  map[string]*world     // by context, which is the name
}

// runningPod is the pod of a gateway.
type runningPod struct {
	deployment types.UID
	public     string
}

// playPods has two worlds play the pods of their gateways.
func playPods(a, b *world) {
	a.pods = &pods{running: make(map[string]runningPod), worlds: map[string]*world{a.Context: a, b.Context: b}}
	b.pods = a.pods
}

func podKey(cluster, peering string, number int) string {
	return fmt.Sprint(cluster, "/", peering, "/", number)
}

// start starts the pod of a Deployment that is not the one of before.
func (p *pods) start(ctx context.Context, c *cluster.Cluster, id records.GatewayID, d *appsv1.Deployment) error {
	if p == nil {
		return nil
	}
	keys, err := inventory.ReadKeys(ctx, c, id)
	if err != nil || keys == nil { // it waits for its Secret
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := podKey(c.Context, id.Peering, id.Number)
	if p.running[key].deployment != d.UID {
		p.running[key] = runningPod{d.UID, keys.Public()}
	}
	return nil
}

// reached reports whether the gateway has a tunnel to each gateway of the peer: each has the key that the record of the
// other names.
func (p *pods) reached(ctx context.Context, c *cluster.Cluster, id records.GatewayID, record *records.Peering) (bool, error) {
	if p == nil || p.worlds[id.Peering] == nil {
		return true, nil
	}
	far, err := inventory.Record[records.Peering](ctx, p.worlds[id.Peering].Cluster, records.PeeringName(c.Context))
	if far == nil || err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range record.Gateways[id.Number-1].Tunnels {
		back, _ := far.Tunnel(i+1, id.Number)
		if p.running[podKey(id.Peering, c.Context, i+1)].public != t.PublicKey || p.running[podKey(c.Context, id.Peering, id.Number)].public != back.PublicKey {
			return false, nil
		}
	}
	return true, nil
}

// carries reports whether a gateway has a tunnel at this moment. It reads what is stored, for reactors, which cannot
// call the API.
func (p *pods) carries(w *world, id records.GatewayID) bool {
	far := p.worlds[id.Peering]
	own, back := storedPeering(w, id.Peering), storedPeering(far, w.Context)
	p.mu.Lock()
	defer p.mu.Unlock()
	public := p.stored(w, id)
	if public == "" || id.Number > len(own.Gateways) {
		return false
	}
	for i, t := range own.Gateways[id.Number-1].Tunnels {
		there, _ := back.Tunnel(i+1, id.Number)
		if t.PublicKey == p.stored(far, records.GatewayID{Peering: w.Context, Number: i + 1}) && there.PublicKey == public {
			return true
		}
	}
	return false
}

// stored is the public key of the pod that runs for a stored Deployment; "": none does.
func (p *pods) stored(w *world, id records.GatewayID) string {
	object, err := w.kube.Tracker().Get(appsv1.SchemeGroupVersion.WithResource("deployments"), w.Namespace, id.Name())
	running := p.running[podKey(w.Context, id.Peering, id.Number)]
	if err != nil || object.(*appsv1.Deployment).UID != running.deployment {
		return ""
	}
	return running.public
}

// storedPeering is the record of a peering, as it is stored; the zero value: none is.
func storedPeering(w *world, peering string) (p records.Peering) {
	object, err := w.kube.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), w.Namespace, records.PeeringName(peering))
	if err == nil {
		p, err = records.Decode[records.Peering](object.(*corev1.ConfigMap).Data[records.DataKey])
	}
	if err != nil && !apierrors.IsNotFound(err) {
		panic(err)
	}
	return p
}
