package netops

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops/nft"
)

// maxReported is how many errors Apply tells of: where a link is missing, thousands of steps fail for it.
const maxReported = 20

// Apply executes the steps in their order. It goes on past a step that fails and returns what failed, joined.
// A step that finds its work done is no failure.
func (k *Kernel) Apply(p Plan) error {
	r := run{Kernel: k, indexes: make(map[string]int)}
	var errs []error
	for _, s := range p.Steps {
		if err := r.step(s); err != nil && !settled(s, err) {
			errs = append(errs, fmt.Errorf("%s %s: %w", s.Op, s.title(), err))
		}
	}
	if n := len(errs) - maxReported; n > 0 {
		errs = append(errs[:maxReported], fmt.Errorf("%d further steps failed", n))
	}
	return errors.Join(errs...)
}

// title is the object in one line.
func (s Step) title() string {
	if _, ok := s.Object.(Firewall); ok {
		return "firewall"
	}
	return s.Object.String()
}

// settled reports whether the error says that the step's work was done before.
func settled(s Step, err error) bool {
	if s.Op == Remove {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) ||
			errors.Is(err, unix.EADDRNOTAVAIL)
	}
	switch s.Object.(type) {
	case Address:
		return errors.Is(err, unix.EEXIST)
	}
	return false
}

// run is one execution of a plan.
type run struct {
	*Kernel
	indexes map[string]int // of links, by name
}

func (r *run) step(s Step) error {
	switch o := s.Object.(type) {
	case Link:
		return r.link(s.Op, o)
	case Membership:
		return r.expel(o)
	case Address:
		return r.address(s.Op, o)
	case Neighbour:
		return r.neighbour(s.Op, o)
	case Nexthop:
		return r.nexthop(s.Op, o)
	case Route:
		return r.routeStep(s.Op, o)
	case Rule:
		return r.rule(s.Op, markedRule{o, Protocol})
	case KernelRule:
		if s.Op == Remove {
			return r.rule(Remove, anyKernelRule)
		}
		return r.rule(s.Op, kernelRule)
	case Firewall:
		return r.nft.Apply(o.Plan)
	case nft.Pass:
		if s.Op == Remove {
			return r.nft.RemovePass(Table, o)
		}
		return r.nft.AddPass(Table, o)
	}
	return fmt.Errorf("no such kind of object: %T", s.Object)
}

// index returns the index of a link, or ENODEV.
func (r *run) index(name string) (int, error) {
	if index, ok := r.indexes[name]; ok {
		return index, nil
	}
	link, err := r.handle.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return 0, fmt.Errorf("link %s: %w", name, unix.ENODEV)
	}
	if err != nil {
		return 0, err
	}
	r.indexes[name] = link.Attrs().Index
	return link.Attrs().Index, nil
}

func (r *run) link(op Op, l Link) error {
	if op == Add {
		if err := r.route.createOverlay(l); err != nil {
			return err
		}
	}
	index, err := r.index(l.Name)
	if err != nil {
		return err
	}
	if op == Remove {
		delete(r.indexes, l.Name)
		return r.handle.LinkDel(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}})
	}
	return r.configureLink(l, index)
}

// expel puts a link into the group in which all are by default.
func (r *run) expel(m Membership) error {
	index, err := r.index(m.Link)
	if err != nil {
		return err
	}
	return r.handle.LinkSetGroup(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}, 0)
}

func (r *run) address(op Op, a Address) error {
	index, err := r.index(a.Link)
	if err != nil {
		return err
	}
	link, ip := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}, a.Prefix.Addr()
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(a.Prefix.Bits(), ip.BitLen())}}
	addr.Broadcast = net.IPv4zero // none
	if a.Link == loopback {
		if op == Add { // one that is there, without our label, is replaced: else it would never be known as ours
			if err := r.handle.AddrDel(link, addr); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return err
			}
		}
		addr.Scope, addr.Label = unix.RT_SCOPE_HOST, addressLabel
	}
	if op == Remove {
		return r.handle.AddrDel(link, addr)
	}
	return r.handle.AddrAdd(link, addr)
}

func (r *run) neighbour(op Op, n Neighbour) error {
	index, err := r.index(n.Link)
	if err != nil {
		return err
	}
	entry := &netlink.Neigh{
		LinkIndex:    index,
		Family:       unix.AF_INET,
		State:        netlink.NUD_PERMANENT,
		IP:           n.IP.AsSlice(),
		HardwareAddr: n.MAC,
	}
	if op == Remove {
		return r.handle.NeighDel(entry)
	}
	return r.handle.NeighSet(entry)
}

func (r *run) nexthop(op Op, n Nexthop) error {
	if op == Remove {
		return r.route.deleteNexthop(n.ID)
	}
	index, err := r.index(n.Link)
	if err != nil {
		return err
	}
	return r.route.setNexthop(n, index)
}

func (r *run) routeStep(op Op, rt Route) error {
	index := 0
	if rt.Link != "" {
		var err error
		if index, err = r.index(rt.Link); err != nil {
			return err
		}
	}
	switch op {
	case Remove:
		return r.route.deleteRoute(rt, index)
	case Replace:
		return r.route.replaceRoute(rt, index)
	}
	return r.route.addRoute(rt, index)
}

func (r *run) rule(op Op, rule markedRule) error {
	if op == Remove {
		return r.route.deleteRule(rule)
	}
	return r.route.addRule(rule)
}
