//go:build linux

package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/cache"
	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/netops"
)

// trustedPage is the page size for records of 256 KiB each: a gateway's object can have the label of a peering's.
const trustedPage = 50

// serversTimeout is the timeout of the guard for reading the addresses of API servers.
const serversTimeout = time.Second

// guard is the first pass of a process: it guards the ranges of all peers, by the records that only liqoctl writes, and
// removes nothing. Objects of gateways, nodes and others are read after it. Even if one of these objects crashes each
// process that reads it, no packet leaves unencrypted.
func (l *loop) guard(ctx context.Context) error {
	o, err := l.trusted(ctx)
	if err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	have := *l.found
	o.found = l.found
	if o.boot, err = l.Kernel.BootRanges(); err != nil {
		l.Log.Warn("the boot guard is not read", "error", err)
	}
	own, err := l.ownAddresses(have.Addresses, o.apiServers)
	if err != nil {
		return err
	}
	v, _ := newLastValid().readTrusted(o, serving.Cluster{Hosts: own}) // the next pass reports faults
	ranges := v.HeldBack
	for _, p := range v.Peerings {
		ranges = append(ranges, p.Seen()...)
	}
	plan := netops.Additions(have, ranges)
	if plan.Empty() {
		return nil
	}
	l.Log.Info("ranges of peers are guarded", "ranges", len(ranges), "plan", fmt.Sprintf("%.600s", helper.Abridged(plan)))
	if err := l.Kernel.Apply(plan); err != nil {
		return err
	}
	// Now, because later passes and processes conclude from the routes that older connections were forgotten.
	return l.forgetOlder(slices.Concat(l.forgotten, ranges))
}

// ownAddresses returns the addresses of the node, as the kernel has them, and of API servers. The Node object, which
// the kubelet writes, is not read yet. Addresses of an earlier process are excluded: they are in the fabric's internal
// CIDR.
func (l *loop) ownAddresses(made []netops.Address, apiServers []netip.Addr) (own serving.Ranges, err error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read addresses of the node: %w", err)
	}
	for _, a := range addresses {
		p, err := netip.ParsePrefix(a.String())
		ours := slices.ContainsFunc(made, func(m netops.Address) bool { return m.Prefix.Addr() == p.Addr() })
		if err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() && !ours {
			own.Add("node address", cidr.Single(p.Addr()))
		}
	}
	own.Add("API server", cidr.Singles(apiServers)...)
	return own, nil
}

// trusted waits for the objects that only liqoctl writes, and reads the API servers' own EndpointSlice. Until the API
// server answers, the guard in the kernel is that of an earlier process.
func (l *loop) trusted(ctx context.Context) (objects, error) {
	for retry := helper.FirstRetry; ; retry = min(2*retry, helper.LastRetry) {
		o, err := l.listTrusted(ctx)
		switch {
		case err == nil:
			o.apiServers = l.servers(l.ownSlice(ctx))
			return o, nil
		case ctx.Err() != nil:
			return o, err
		}
		l.Log.Warn("read the records of peerings; it is tried again", "error", err, "in", retry.String())
		wakeup.Sleep(ctx, retry)
	}
}

// listTrusted reads the objects that only liqoctl writes. Objects that others labelled like them are recognised by
// their names, and dropped.
func (l *loop) listTrusted(ctx context.Context) (o objects, err error) {
	s := cache.Selection{Labels: allBut(records.ComponentStatus, records.ComponentGateway)}
	page := metav1.ListOptions{Limit: trustedPage}
	for more := true; more; more = page.Continue != "" {
		pageCtx, cancel := context.WithTimeout(ctx, helper.APITimeout)
		list, err := l.Client.CoreV1().ConfigMaps(l.Namespace).List(pageCtx, s.Options(page))
		cancel()
		if err != nil {
			return objects{}, fmt.Errorf("list ConfigMaps: %w", err)
		}
		for i := range list.Items {
			cm := cache.Trimmed(&list.Items[i], true).(*corev1.ConfigMap)
			switch id, _ := records.IdentityOf(cm.Name); id.Component {
			case records.ComponentFabric:
				o.fabric = cm
			case records.ComponentIPAM:
				o.ipam = cm
			case records.ComponentPeering:
				o.maps = append(o.maps, cm)
			}
		}
		page.Continue = list.Continue
	}
	return o, nil
}

// ownSlice returns the EndpointSlice of the API servers: if this helper connects to a Service, only that slice has the
// addresses behind it. nil: no answer in time, or no slice.
func (l *loop) ownSlice(ctx context.Context) *discoveryv1.EndpointSlice {
	ctx, cancel := context.WithTimeout(ctx, serversTimeout)
	defer cancel()
	list, err := l.Client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault).List(ctx, cache.Selection{Name: apiServerSlice}.Options(metav1.ListOptions{}))
	switch {
	case err != nil:
		l.Log.Warn("read the addresses of API servers; the guard goes on without", "error", err)
		return nil
	case len(list.Items) == 0:
		return nil
	}
	return &list.Items[0]
}
