package kernel

import (
	"errors"
	"fmt"
	"net/netip"

	"liqonet.io/liqonet/netops"
)

// Leftovers lists liqonet's objects in the kernel of the calling thread's network namespace, one line for each; nil if
// there are none. With remove it removes them first, together with the connections of the ranges that routes lead to,
// and returns those that could not be removed.
func Leftovers(remove bool) (left []string, err error) {
	k, err := Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	if remove {
		if err := empty(k); err != nil {
			return nil, err
		}
	}
	have, err := k.Observe()
	if err != nil {
		return nil, fmt.Errorf("observe kernel: %w", err)
	}
	for _, step := range netops.Diff(have, netops.State{}).Steps {
		if f, ok := step.Object.(netops.Firewall); ok {
			left = append(left, "nftables table "+f.Plan.Table()) // not each of its rules
			continue
		}
		left = append(left, netops.Printable(step.Object.String()))
	}
	boot, err := k.HasBootGuard()
	if boot {
		left = append(left, "nftables table "+BootTable)
	}
	return left, err
}

// empty removes all objects of liqonet.
func empty(k *Kernel) error {
	have, err := k.Observe()
	if err != nil {
		return fmt.Errorf("observe kernel: %w", err)
	}
	var ranges []netip.Prefix
	for _, r := range have.Routes {
		ranges = append(ranges, r.Dst)
	}
	return errors.Join(k.Cleanup(), k.FlushConntrack(ranges))
}
