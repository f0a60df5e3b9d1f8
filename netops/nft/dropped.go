package nft

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Dropped returns how many packets the rules of a table that count and drop have dropped, by chain. Chains without
// such a rule, and those of a table that is not there, are missing. A counter begins anew when its rule is replaced.
func (c *Conn) Dropped(family Family, table string) (map[string]uint64, error) {
	answers, err := c.request(family, unix.NFT_MSG_GETRULE, netlink.Dump, attr(unix.NFTA_RULE_TABLE, table))
	if err != nil {
		return nil, fmt.Errorf("read counters of table %s: %w", table, err)
	}
	drop, err := canonicalExpr(Drop().code[0], nil)
	if err != nil {
		return nil, err
	}
	dropped := make(map[string]uint64)
	for _, a := range answers {
		if a.string(unix.NFTA_RULE_TABLE) != table {
			continue
		}
		packets, drops, err := counted(a, drop)
		if err != nil {
			return nil, fmt.Errorf("read counters of table %s: %w", table, err)
		}
		if drops {
			dropped[a.string(unix.NFTA_RULE_CHAIN)] += packets
		}
	}
	return dropped, nil
}

// counted returns what a rule's counter says, and whether the rule has one and drops.
func counted(rule attributes, drop string) (packets uint64, drops bool, err error) {
	elems, err := netlink.UnmarshalAttributes(rule[unix.NFTA_RULE_EXPRESSIONS])
	if err != nil {
		return 0, false, err
	}
	counts, ends := false, false
	for _, e := range elems {
		a, err := decode(e.Data)
		if err != nil {
			return 0, false, err
		}
		switch a.string(unix.NFTA_EXPR_NAME) {
		case "counter":
			counter, err := decode(a[unix.NFTA_EXPR_DATA])
			if err != nil {
				return 0, false, err
			}
			if b := counter[unix.NFTA_COUNTER_PACKETS]; len(b) == 8 {
				packets, counts = binary.BigEndian.Uint64(b), true
			}
		case "immediate":
			text, err := canonicalElem(e.Data, func(set string) string { return set })
			if err != nil {
				return 0, false, err
			}
			ends = ends || text == drop
		}
	}
	return packets, counts && ends, nil
}
