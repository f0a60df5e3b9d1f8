package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"go4.org/netipx"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/internal/cidr"
)

// policyGroup is XFRMNLGRP_POLICY of linux/xfrm.h.
const policyGroup = 4

// policies adds to found, for each peer without an entry, an IPsec policy that drops or encrypts packets between the
// node's pods and the peer. Route lookups do not show it: the kernel evaluates policies afterwards (ip_forward in
// net/ipv4/ip_forward.c). Policies of Cilium's encryption do not count: they select marks that packets to peers do not
// have, or do not require encryption of packets that arrive.
func (k *Kernel) policies(peers []PeerTraffic, found []string) error {
	handle, err := k.open(unix.NETLINK_XFRM)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil // a kernel without IPsec
	}
	var all []netlink.XfrmPolicy
	if err == nil {
		defer handle.Close()
		err = consistently(func() (err error) {
			all, err = handle.XfrmPolicyList(netlink.FAMILY_V4)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("read IPsec policies: %w", err)
	}
	all = slices.DeleteFunc(all, func(p netlink.XfrmPolicy) bool {
		marked := p.Mark != nil && p.Mark.Value&p.Mark.Mask != 0
		return marked || p.Ifid != 0 || p.Dir != netlink.XFRM_DIR_OUT && p.Dir != netlink.XFRM_DIR_FWD
	})
	slices.SortStableFunc(all, func(a, b netlink.XfrmPolicy) int { return cmp.Compare(a.Priority, b.Priority) })
	for i, c := range peers {
		for _, pod := range c.Pods {
			for _, peer := range c.Peer {
				found[i] = cmp.Or(found[i], refusing(all, cidr.Single(pod), peer), refusing(all, peer, cidr.Single(pod)))
			}
		}
	}
	return nil
}

// refusing returns the policy that drops or encrypts packets from one range to another; "": there is none. In each
// direction the first matching policy applies.
func refusing(policies []netlink.XfrmPolicy, from, to netip.Prefix) string {
	free := map[netlink.Dir]bool{} // all packets pass
	for _, p := range policies {
		src, _ := netipx.FromStdIPNet(p.Src)
		dst, _ := netipx.FromStdIPNet(p.Dst)
		if free[p.Dir] || !src.Overlaps(from) || !dst.Overlaps(to) {
			continue
		}
		encrypts := slices.ContainsFunc(p.Tmpls, func(t netlink.XfrmPolicyTmpl) bool { return t.Optional == 0 })
		if p.Action == netlink.XFRM_POLICY_BLOCK || encrypts {
			described := fmt.Sprintf("src %s dst %s %s", src, dst, p.Dir)
			if !encrypts {
				described += " action block"
			}
			return fmt.Sprintf("packets from %s to %s meet an IPsec policy of another program: %s",
				from, to, described)
		}
		flow := p.Proto != 0 || p.SrcPort != 0 || p.DstPort != 0 || p.Ifindex != 0
		free[p.Dir] = !flow && src.Bits() <= from.Bits() && dst.Bits() <= to.Bits()
	}
	return ""
}
