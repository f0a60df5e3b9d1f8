package path

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/bench/apiserver"
	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/netns"
	"liqonet.io/liqonet/internal/records"
)

const (
	peeringName = "peer"
	gatewayPod  = "gateway-peer-0"
	nodeName    = "node"
)

var (
	externalCIDR = netip.MustParsePrefix("10.70.0.0/16")
	peerExternal = netip.MustParsePrefix("10.71.0.0/16")
	internalCIDR = netip.MustParsePrefix("10.80.0.0/16")
)

// Liqonet is the path from pod to pod as liqonet's helpers make and keep it: each in a process of its own, which
// follows the records that connect would write.
func (b *Bed) Liqonet() (load.Way, error) {
	client, server, err := b.clusters()
	if err != nil {
		return load.Way{}, err
	}
	preshared, err := wgtypes.GenerateKey()
	if err != nil {
		return load.Way{}, err
	}
	for _, c := range []struct{ end, peer *cluster }{{server, client}, {client, server}} {
		if err := b.help(c.end, c.peer, preshared); err != nil {
			return load.Way{}, fmt.Errorf("cluster %s: %w", c.end.name, err)
		}
	}
	for _, c := range b.joined {
		if err := b.proven(c.api); err != nil {
			return load.Way{}, err
		}
	}
	return b.complete(load.Way{From: client.pod, To: server.pod, Address: server.seenPod()})
}

// joined is a cluster with helpers.
type joined struct {
	api *fake.Clientset
	// Of its gateway.
	gateway netns.Namespace
	process int
	log     *childLog
}

// help starts a cluster's API server and helpers.
func (b *Bed) help(c, peer *cluster, preshared wgtypes.Key) error {
	dir, err := os.MkdirTemp("", "liqonet-bench-")
	if err != nil {
		return err
	}
	b.onClose(func() error { return os.RemoveAll(dir) })
	for name, key := range map[string]wgtypes.Key{records.PrivateKeyKey: c.key, records.PresharedKeyKey: preshared} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(key.String()), 0o600); err != nil {
			return err
		}
	}
	objects, err := b.objects(c, peer)
	if err != nil {
		return err
	}
	kube, socket := fake.NewClientset(objects...), filepath.Join(dir, "api")
	b.serve(kube, socket)
	_, _, errNode := b.start(c.node, job{Helper: &helperJob{Socket: socket, Node: nodeName}})
	_, log, errGateway := b.start(c.gateway, job{Helper: &helperJob{Socket: socket, Node: nodeName, Peering: peeringName, Keys: dir}})
	b.joined = append(b.joined, &joined{api: kube, gateway: c.gateway, process: b.started[len(b.started)-1], log: log})
	return errors.Join(errNode, errGateway)
}

// serve offers a cluster's objects until the bed ends.
func (b *Bed) serve(kube *fake.Clientset, socket string) {
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan error, 1)
	go func() { done <- apiserver.Serve(ctx, kube, socket) }()
	b.onClose(func() error {
		cancel()
		return <-done
	})
}

// objects are what the API server of a connected cluster holds. The gateway fills the empty ones.
func (b *Bed) objects(c, peer *cluster) ([]runtime.Object, error) {
	tunnel := records.Tunnel{
		PublicKey: peer.key.PublicKey().String(), Address: netip.PrefixFrom(c.tunnel, tunnelBits), PeerAddress: peer.tunnel, ListenPort: listenPort,
	}
	if c.role == records.Client {
		tunnel.Endpoints = []string{netip.AddrPortFrom(peer.nodeAddress(), nodePort).String()}
	}
	p := records.Peering{
		Version: records.PeeringVersion, Name: peeringName, Role: c.role,
		Peer: records.Peer{
			ClusterID: "id-" + peer.name, Name: peer.name,
			PodCIDRs:     []records.Mapping{{Real: podCIDR, Seen: peer.seen}},
			ExternalCIDR: records.Mapping{Real: externalCIDR, Seen: peerExternal},
		},
		Gateways: []records.LocalGateway{{
			OverlayID: overlayID, Address: netip.MustParseAddr("10.80.128.1"), Tunnels: []records.Tunnel{tunnel},
		}},
		Implementation: b.kinds.WireGuard, MTU: pathMTU, ClampMSS: true,
	}
	f := records.Fabric{
		Version: records.SchemaVersion, ClusterID: "id-" + c.name, Name: c.name, PodCIDRs: []netip.Prefix{podCIDR},
		ExternalCIDR: externalCIDR, InternalCIDR: internalCIDR,
		Overlay: records.Overlay{Kind: b.kinds.Overlay, Port: overlayPort}, MTU: linkMTU,
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "uid"},
		Spec:       corev1.NodeSpec{PodCIDRs: []string{nodePodCIDR.String()}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: records.DefaultNamespace, Name: gatewayPod,
			Labels: records.Identity{Component: records.ComponentGateway, Peering: p.Name}.Labels(),
		},
		Spec:   corev1.PodSpec{NodeName: nodeName},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: gatewayAddress.String()}}},
	}
	fabric, errFabric := configMap(records.FabricName, f)
	peering, errPeering := configMap(records.PeeringName(p.Name), p)
	gateway, errGateway := configMap(records.GatewayID{Peering: p.Name, Number: 1}.Name(), nil)
	status, errStatus := configMap(records.GatewayID{Peering: p.Name, Number: 1}.StatusName(), nil)
	return []runtime.Object{node, pod, fabric, peering, gateway, status}, errors.Join(errFabric, errPeering, errGateway, errStatus)
}

// configMap is the object that carries a record; nil: none yet.
func configMap(name string, d records.Document) (*corev1.ConfigMap, error) {
	id, _ := records.IdentityOf(name)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: records.DefaultNamespace, Labels: id.Labels()}}
	if d == nil {
		return cm, nil
	}
	text, err := records.Encode(d)
	cm.Data = map[string]string{records.DataKey: text}
	return cm, err
}

const (
	proofPatience = time.Minute // in a slow guest, too
	proofEvery    = 50 * time.Millisecond
)

// proven waits until a gateway reports that packets of full size crossed from its node to the peer's and back.
func (b *Bed) proven(kube *fake.Clientset) error {
	ctx, cancel := context.WithTimeout(b.ctx, proofPatience)
	defer cancel()
	for tick := time.NewTicker(proofEvery); ; {
		s, err := status(ctx, kube)
		if err == nil && len(s.Nodes) == 1 && !s.Nodes[0].LastProof.IsZero() {
			if s.Overlay != b.kinds.Overlay || s.Implementation != b.kinds.WireGuard {
				return fmt.Errorf("the path is of %s and %s, want %s and %s", s.Overlay, s.Implementation, b.kinds.Overlay, b.kinds.WireGuard)
			}
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("no packet has crossed within %v: status %+v", proofPatience, s), err)
		}
	}
}

func status(ctx context.Context, kube kubernetes.Interface) (records.Status, error) {
	cm, err := kube.CoreV1().ConfigMaps(records.DefaultNamespace).Get(ctx, records.GatewayID{Peering: peeringName, Number: 1}.StatusName(), metav1.GetOptions{})
	if err != nil || cm.Data[records.DataKey] == "" {
		return records.Status{}, err
	}
	return records.Decode[records.Status](cm.Data[records.DataKey])
}
