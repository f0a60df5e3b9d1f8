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

	"liqonet.io/liqonet/bench/load"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/process"
)

const (
	peeringName = "peer"
	nodeName    = "node"
)

var (
	externalCIDR = netip.MustParsePrefix("10.70.0.0/16")
	peerExternal = netip.MustParsePrefix("10.71.0.0/16")
	internalCIDR = netip.MustParsePrefix("10.80.0.0/16")
)

// podOf is the name of a gateway's pod.
func podOf(i int) string { return fmt.Sprintf("gateway-peer-%d", i) }

// Liqonet is the path from pod to pod as liqonet's helpers make and keep it, with so many gateways in each cluster:
// each in a process of its own, which follows the records that connect would write.
func (b *Bed) Liqonet(gateways int) (load.Way, error) {
	client, server, err := b.clusters()
	if err != nil {
		return load.Way{}, err
	}
	for _, c := range []*cluster{server, client} {
		for range gateways - 1 {
			if err := b.addGateway(c); err != nil {
				return load.Way{}, err
			}
		}
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
	for _, c := range b.joined[len(b.joined)-2:] {
		for i := range gateways {
			if err := b.proven(c.api, i); err != nil {
				return load.Way{}, err
			}
		}
	}
	return b.complete(load.Way{From: client.pod, To: server.pod, Address: server.seenPod()})
}

// joined is a cluster with helpers.
type joined struct {
	api *fake.Clientset
	// Of its first gateway.
	gateway netns.Handle
	process *process.Handle
}

// help starts a cluster's API server and helpers.
func (b *Bed) help(c, peer *cluster, preshared wgtypes.Key) error {
	dir, err := os.MkdirTemp("", "liqonet-bench-")
	if err != nil {
		return err
	}
	b.onClose(func() error { return os.RemoveAll(dir) })
	objects, err := b.objects(c, peer)
	if err != nil {
		return err
	}
	api, socket := fake.NewClientset(objects...), filepath.Join(dir, "api")
	b.onClose(apiserver.Start(api, socket))
	if _, err := b.start(c.node, Job{Helper: &Helper{Socket: socket, Node: &helper.Node{Name: nodeName}}}); err != nil {
		return err
	}
	for i := range len(c.others) + 1 {
		g := c.gatewayOf(i)
		keys := filepath.Join(dir, podOf(i))
		if err := WriteKeys(keys, g.key, preshared); err != nil {
			return err
		}
		p, err := b.start(g.pod, Job{Helper: &Helper{Socket: socket, Gateway: &helper.Gateway{
			ID: records.GatewayID{Peering: peeringName, Number: i + 1}, Pod: podOf(i), PodIP: gatewayAt(i), Node: nodeName, Keys: keys,
		}}})
		if err != nil {
			return err
		}
		if i == 0 {
			b.joined = append(b.joined, &joined{api: api, gateway: g.pod, process: p})
		}
	}
	return nil
}

// WriteKeys makes the folder of a gateway's keys.
func WriteKeys(dir string, private, preshared wgtypes.Key) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, records.PrivateKeyKey), []byte(private.String()), 0o600),
		os.WriteFile(filepath.Join(dir, records.PresharedKeyKey), []byte(preshared.String()), 0o600))
}

// objects are what the API server of a connected cluster holds. The gateway fills the empty ones.
func (b *Bed) objects(c, peer *cluster) ([]runtime.Object, error) {
	p := records.Peering{
		Version: records.SchemaVersion, Name: peeringName, Role: c.role,
		Peer: records.Peer{
			ClusterID: "id-" + peer.name, Name: peer.name,
			PodCIDRs:     []records.Mapping{{Real: podCIDR, Seen: peer.seen}},
			ExternalCIDR: records.Mapping{Real: externalCIDR, Seen: peerExternal},
		},
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
	objects := []runtime.Object{node}
	var errs []error
	add := func(name string, d records.Document) {
		cm, err := ConfigMap(name, d)
		objects, errs = append(objects, cm), append(errs, err)
	}
	for i := range len(c.others) + 1 {
		id := records.GatewayID{Peering: p.Name, Number: i + 1}
		p.Gateways = append(p.Gateways, c.record(i, peer))
		objects = append(objects, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: podOf(i), Labels: id.Identity(records.ComponentGateway).Labels()},
			Spec:       corev1.PodSpec{NodeName: nodeName},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: gatewayAt(i).String()}}},
		})
		add(id.Name(), nil)
		add(id.StatusName(), nil)
	}
	add(records.FabricName, f)
	add(records.PeeringName(p.Name), p)
	return objects, errors.Join(errs...)
}

// record is a gateway, by its number less one, with its tunnels.
func (c *cluster) record(i int, peer *cluster) records.LocalGateway {
	g := records.LocalGateway{OverlayID: overlayID + uint32(i), Address: netip.AddrFrom4([4]byte{10, 80, 128, byte(i + 1)})}
	for j := range len(peer.others) + 1 {
		server, client := i, j
		if c.role == records.Client {
			server, client = j, i
		}
		number := tunnelNumber(server, client)
		t := records.Tunnel{
			PublicKey: peer.gatewayOf(j).key.PublicKey().String(),
			Address:   netip.PrefixFrom(addressIn(c.tunnel, number), tunnelBits), PeerAddress: addressIn(peer.tunnel, number),
			ListenPort: listenPort + uint16(j),
		}
		if c.role == records.Client {
			t.Endpoints = []string{netip.AddrPortFrom(peer.nodeAddress(), uint16(nodePort+number)).String()}
		}
		g.Tunnels = append(g.Tunnels, t)
	}
	return g
}

// addressIn is the address in the range of another tunnel, by its number.
func addressIn(first netip.Addr, tunnel int) netip.Addr {
	a := first.As4()
	a[3] += byte(tunnel << (32 - tunnelBits))
	return netip.AddrFrom4(a)
}

// ConfigMap is the object that carries a record; nil: none yet.
func ConfigMap(name string, d records.Document) (*corev1.ConfigMap, error) {
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
func (b *Bed) proven(api *fake.Clientset, gateway int) error {
	ctx, cancel := context.WithTimeout(b.ctx, proofPatience)
	defer cancel()
	for tick := time.NewTicker(proofEvery); ; {
		s, err := status(ctx, api, gateway)
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

func status(ctx context.Context, api kubernetes.Interface, gateway int) (records.Status, error) {
	name := records.GatewayID{Peering: peeringName, Number: gateway + 1}.StatusName()
	cm, err := api.CoreV1().ConfigMaps(records.DefaultNamespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || cm.Data[records.DataKey] == "" {
		return records.Status{}, err
	}
	return records.Decode[records.Status](cm.Data[records.DataKey])
}
