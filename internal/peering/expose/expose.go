// Package expose exposes hosts outside a cluster to a peer, and removes them again: the host's address at the peer is
// reserved, written into the record of the peering, and served by the gateway.
package expose

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"liqonet.io/liqonet/internal/cidr"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Exposure is the result of Expose or Withdraw.
type Exposure struct {
	Peer string `json:"peer"`
	// ExposedHost is the host as exposed or, after Withdraw, as it was before. Without an address it was not exposed.
	status.ExposedHost
	Changed bool `json:"changed"`
}

// Expose makes a host outside the cluster reachable for a peer's pods. It returns when the gateway forwards their
// packets. An address that cannot be exposed is an *InputError. Exposing a host again changes nothing.
func Expose(ctx context.Context, o Options, r progress.Reporter) (Exposure, error) {
	if err := checkHost(o.Host); err != nil {
		return Exposure{}, err
	}
	return o.run(ctx, r, true)
}

// Withdraw unexposes a host, and returns when the gateway has removed it. A host that is not exposed is no error.
func Withdraw(ctx context.Context, o Options, r progress.Reporter) (Exposure, error) {
	return o.run(ctx, r, false)
}

// PlanExpose returns what Expose would change, and changes nothing.
func PlanExpose(ctx context.Context, o Options, r progress.Reporter) (plan.Plan, error) {
	o.Cluster = o.Cluster.DryRun()
	_, err := Expose(ctx, o, progress.Planning(r))
	return plan.Of(ctx, err, o.Cluster)
}

// PlanWithdraw returns what Withdraw would change, and changes nothing.
func PlanWithdraw(ctx context.Context, o Options, r progress.Reporter) (plan.Plan, error) {
	o.Cluster = o.Cluster.DryRun()
	_, err := Withdraw(ctx, o, progress.Planning(r))
	return plan.Of(ctx, err, o.Cluster)
}

// run serves the host, or stops serving it.
func (o Options) run(ctx context.Context, r progress.Reporter, serve bool) (Exposure, error) {
	return plan.Locked(ctx, r, func(ctx context.Context) (Exposure, error) { return o.locked(ctx, r, serve) }, &o.Cluster)
}

func (o Options) locked(ctx context.Context, r progress.Reporter, serve bool) (Exposure, error) {
	ctx, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	x := &exposer{Options: o, serve: serve}
	s := progress.Stages{Reporter: r}
	err := s.Run(ctx, progress.Step{Stage: progress.StageReach, Do: func(ctx context.Context) (string, error) { return x.Cluster.Context, x.read(ctx) }})
	if err == nil && serve {
		err = x.checkOutside(ctx) // it has no stage: its errors do not depend on one
	}
	if err == nil {
		err = s.Run(ctx, progress.Step{Stage: progress.StageAddress, Do: x.change}, progress.Step{Stage: progress.StageGateway, Hint: "why it does not answer: liqoctl network status " + o.Peer, Do: x.await})
	}
	if err == nil && !serve {
		err = x.release(ctx)
	}
	if err != nil {
		return Exposure{}, err
	}
	result := Exposure{Peer: o.Peer, ExposedHost: status.ExposedHost{Host: o.Host}, Changed: x.changed}
	if x.host != (records.Exposed{}) {
		result.ExposedHost = status.DescribeHost(x.peering, x.host)
		result.Served = serve
	}
	return result, nil
}

// exposer is a running Expose or Withdraw.
type exposer struct {
	Options
	serve   bool // desired state of the host
	fabric  records.Fabric
	peering records.Peering
	host    records.Exposed // the zero value: not exposed
	changed bool
}

func (x *exposer) read(ctx context.Context) error {
	if err := x.Cluster.Reach(ctx); err != nil {
		return err
	}
	if err := x.Cluster.CheckPermissions(ctx, x.permissions()); err != nil {
		return err
	}
	fabric, err := inventory.Fabric(ctx, x.Cluster)
	if err != nil {
		return err
	}
	x.peering, err = inventory.FindPeering(ctx, x.Cluster, x.Peer, func(p records.Peering) bool { return p.Name == x.Peer && fabric != nil })
	if err != nil {
		return err
	}
	x.fabric = *fabric
	x.host = x.peering.ExposedAs(x.Host)
	return nil
}

// permissions returns the required permissions.
func (x *exposer) permissions() []kube.Permission {
	var needed []kube.Permission
	for _, verb := range []string{"get", "list", "watch", "patch"} {
		needed = append(needed, kube.Permission{Verb: verb, Resource: "configmaps", Namespace: x.Cluster.Namespace})
	}
	for _, verb := range []string{"get", "update"} {
		needed = append(needed, kube.Permission{Verb: verb, Group: "coordination.k8s.io", Resource: "leases", Namespace: x.Cluster.Namespace, Name: records.LockName})
	}
	if x.serve {
		needed = append(needed, kube.Permission{Verb: "list", Resource: "nodes"})
		needed = append(needed, discover.APIServerPermissions()...)
	}
	return needed
}

// change updates the records, and returns the address of the exposed host.
func (x *exposer) change(ctx context.Context) (string, error) {
	if !x.serve {
		return "", x.write(ctx, nil)
	}
	err := x.expose(ctx)
	return x.host.Address.String(), err
}

// expose reserves an address and writes it into the peering's record.
func (x *exposer) expose(ctx context.Context) error {
	if x.host == (records.Exposed{}) && len(x.peering.Exposed) >= records.MaxExposed {
		return x.withRoomHint(fmt.Errorf("expose %s: peering %q has %d exposed hosts, the maximum", x.Host, x.Peer, len(x.peering.Exposed)))
	}
	// A dry run rejects the host before an address is reserved, if the record cannot be written.
	dry := *x
	dry.Cluster = x.Cluster.DryRun()
	if err := dry.write(ctx, &records.Exposed{Host: x.Host, Address: x.host.Address}); err != nil {
		return err
	}
	owner := ipam.Peering(x.Peer)
	request := ipam.Request{Owner: owner, Purpose: ipam.ExposedHost, Real: cidr.Single(x.Host)}
	if x.host != (records.Exposed{}) {
		request.Preferred = cidr.Single(x.host.Address)
	}
	desired := records.Exposed{Host: x.Host}
	var refused error
	err := inventory.AddReservations(ctx, x.Cluster, &x.fabric, func(r *ipam.Registry) (err error) {
		if refused = x.checkRanges(r); refused != nil { // ranges may have been reserved since checkOutside
			return refused
		}
		// A later peer must not get a pod CIDR with the host's address, as this peer would then reach its pods. This is
		// best effort: a range that a user reserved is not allocated to peers either.
		_ = r.Reserve(ipam.Reservation{Range: cidr.Single(x.Host), Owner: owner, Purpose: ipam.OutsideHost, Shared: true})
		_, forHosts := cidr.Halves(x.fabric.ExternalCIDR()) // nodes use the lower half
		desired.Address, err = r.AcquireAddress(request, forHosts)
		return err
	})
	switch {
	case refused != nil:
		return refused
	case errors.Is(err, ipam.ErrNoneFree):
		return x.withRoomHint(err)
	case err != nil:
		return err
	}
	x.host = desired
	return x.write(ctx, &desired)
}

// withRoomHint adds the hint how to make room.
func (x *exposer) withRoomHint(err error) error {
	return hint.With(err, "stop exposing a host that "+x.Peer+" does not need: liqoctl network status -o wide lists them")
}

// release releases the address, after the gateways have stopped serving it.
func (x *exposer) release(ctx context.Context) error {
	owner := ipam.Peering(x.Peer)
	return inventory.UpdateReservations(ctx, x.Cluster, func(r *ipam.Registry) error {
		for _, h := range r.Held(owner, ipam.ExposedHost, ipam.OutsideHost) {
			if h.Real != cidr.Single(x.Host) && h.Range != cidr.Single(x.Host) {
				continue
			}
			x.changed = true
			if err := r.ReleaseRange(owner, h.Purpose, h.Range); err != nil {
				return err
			}
		}
		return nil
	})
}

// write adds the host to the peering's record, or removes it if host is nil. It writes only changes.
func (x *exposer) write(ctx context.Context, host *records.Exposed) error {
	desired := x.peering
	desired.Exposed = withHost(desired.Exposed, x.Host, host)
	change, err := inventory.Write(ctx, x.Cluster, records.PeeringName(x.Peer), &x.peering, desired)
	x.changed = x.changed || change.Alters()
	return err
}

// await waits until every gateway reports that it serves the host, or no longer does.
func (x *exposer) await(ctx context.Context) (string, error) {
	what := fmt.Sprintf("the gateway of peering %q to let %s pass", x.Peer, x.Host)
	if !x.serve {
		what = fmt.Sprintf("the gateway of peering %q to forget %s", x.Peer, x.Host)
	}
	for _, id := range x.peering.GatewayIDs() {
		err := plan.Later(inventory.AwaitStatus(ctx, x.Cluster, id, what, func(s *records.Status) string {
			served := s != nil && slices.Contains(s.Exposed, x.host)
			forgotten := s == nil || !slices.ContainsFunc(s.Exposed, func(e records.Exposed) bool { return e.Host == x.Host })
			if x.serve && served || !x.serve && forgotten {
				return ""
			}
			return "it has not reported it yet"
		}))
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// withHost returns a sorted list of exposed hosts with the host as given, or without it if as is nil.
func withHost(all []records.Exposed, host netip.Addr, as *records.Exposed) []records.Exposed {
	now := slices.DeleteFunc(slices.Clone(all), func(e records.Exposed) bool { return e.Host == host })
	if as != nil {
		now = append(now, *as)
	}
	slices.SortStableFunc(now, func(a, b records.Exposed) int { return a.Host.Compare(b.Host) })
	return now
}

// Options are the options of Expose and Withdraw.
type Options struct {
	Cluster *kube.Cluster
	Peer    string        // name of the peering
	Host    netip.Addr    // outside the cluster
	Timeout time.Duration // total; 0: none
}
