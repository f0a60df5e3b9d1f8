package kernel

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// maxReported is the maximum number of errors that Apply returns. A missing link makes thousands of steps fail.
const maxReported = 20

// Apply executes the steps in order. It continues after a failed step and returns the joined errors. A step whose
// result already exists is not an error. Nexthops that cannot be added are left out of their groups, so that one
// unreachable gateway does not disable the others.
//
// If creating a firewall fails, packets that arrive on the links would not be filtered. Then no path is opened: links,
// addresses, nexthops and routes are not added or changed, only removed. A firewall that existed before still drops
// unknown packets.
func (k *Kernel) Apply(p netops.Plan) error {
	r := run{Kernel: k, indexes: make(map[string]int), missing: make(map[uint32]bool)}
	var errs []error
	unfiltered, skipped := false, 0
	for _, s := range p.Steps {
		if unfiltered && opens(s) {
			skipped++
			continue
		}
		if err := r.step(s); err != nil && !alreadyDone(s, err) {
			errs = append(errs, fmt.Errorf("%s %s: %w", s.Op, title(s), err))
			switch o := s.Object.(type) {
			case netops.Firewall:
				unfiltered = unfiltered || o.Unfiltered && s.Op != netops.Remove
			case netops.Nexthop:
				r.missing[o.ID] = r.missing[o.ID] || s.Op == netops.Add
			}
		}
	}
	if n := len(errs) - maxReported; n > 0 {
		errs = append(errs[:maxReported], fmt.Errorf("%d further steps failed", n))
	}
	if skipped > 0 {
		errs = append(errs, fmt.Errorf("%d steps wait for the firewall", skipped))
	}
	return errors.Join(errs...)
}

// opens reports whether the step, or one that depends on it, lets packets pass. The steps of the guard do not: they
// only block packets.
func opens(s netops.Step) bool {
	switch o := s.Object.(type) {
	case netops.Firewall, netops.Rule, netops.KernelRule:
		return false
	case netops.Route:
		return s.Op != netops.Remove && o.Leads()
	}
	return s.Op != netops.Remove
}

// title returns the object in one line.
func title(s netops.Step) string {
	title, _, _ := strings.Cut(s.Object.String(), "\n")
	return title
}

// alreadyDone reports whether the error means that the result of the step already exists.
func alreadyDone(s netops.Step, err error) bool {
	if s.Op == netops.Remove {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) ||
			errors.Is(err, unix.EADDRNOTAVAIL)
	}
	_, address := s.Object.(netops.Address)
	return address && errors.Is(err, unix.EEXIST)
}

// run is one execution of a plan.
type run struct {
	*Kernel
	indexes map[string]int  // of links, by name
	missing map[uint32]bool // nexthops that could not be added
}

// step applies a change of one object.
func (r *run) step(s netops.Step) error {
	switch o := s.Object.(type) {
	case netops.Link:
		return r.changeLink(s.Op, o)
	case netops.ForeignMember: // removal sets group 0, the default
		return r.on(o.Link, func(index int) error {
			return r.route.setLink(unix.IfInfomsg{Index: int32(index)}, required(unix.IFLA_GROUP, new(uint32)))
		})
	case netops.Address:
		return r.on(o.Link, func(index int) error { return r.route.changeAddress(s.Op, o, index) })
	case netops.Neighbour:
		return r.on(o.Link, func(index int) error { return r.route.changeNeighbour(s.Op, o, index) })
	case netops.Nexthop:
		return r.on(o.Link, func(index int) error { return r.route.changeNexthop(s.Op, o, index) })
	case netops.NexthopGroup:
		o.Members = netops.Only(o.Members, func(id uint32) bool { return !r.missing[id] })
		return r.route.changeNexthopGroup(s.Op, o)
	case netops.Route:
		return r.on(o.Link, func(index int) error { return r.route.changeRoute(s.Op, o, index) })
	case netops.Rule:
		return r.route.changeRule(s.Op, markedRule{Rule: o, protocol: netops.Protocol})
	case netops.KernelRule:
		return r.route.changeKernelRule(s.Op)
	case netops.Firewall:
		return r.nft.Apply(o.Plan)
	case nft.Pass:
		if s.Op == netops.Remove {
			return r.nft.RemovePass(netops.Table, o)
		}
		return r.nft.AddPass(netops.Table, o)
	}
	return fmt.Errorf("no such kind of object: %T", s.Object)
}

func (r *run) changeLink(op netops.Op, l netops.Link) error {
	if op == netops.Add {
		if err := r.route.createOverlay(l); err != nil {
			return err
		}
	}
	return r.on(l.Name, func(index int) error {
		if op == netops.Remove {
			delete(r.indexes, l.Name)
			return r.route.execute(changing(netops.Remove, unix.RTM_NEWLINK, 0, unix.IfInfomsg{Index: int32(index)}))
		}
		return r.route.configureLink(l, index)
	})
}

// on calls change with the index of a link, 0 for "". A missing link is ENODEV.
func (r *run) on(link string, change func(index int) error) error {
	index, known := r.indexes[link]
	if link != "" && !known {
		var err error
		if index, err = r.route.linkIndex(link); err != nil {
			return err
		}
		r.indexes[link] = index
	}
	return change(index)
}
