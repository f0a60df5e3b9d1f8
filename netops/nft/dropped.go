package nft

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Dropped returns how many packets the rules of a table that count and drop have dropped, by chain. Chains without
// such a rule, and those of a table that is not there, are missing. A counter begins anew when its rule is replaced.
func (c *Conn) Dropped(family Family, table string) (map[string]uint64, error) {
	rules, err := c.rules(family, table, "")
	if err != nil {
		return nil, fmt.Errorf("read counters of table %s: %w", table, err)
	}
	dropped := make(map[string]uint64)
	for _, r := range rules {
		if packets, drops := counted(r, canonicalExpr(Drop().code[0], nil)); drops {
			dropped[r.string(unix.NFTA_RULE_CHAIN)] += packets
		}
	}
	return dropped, nil
}

// counted returns what a rule's counter says, and whether the rule has one and drops.
func counted(rule attributes, drop string) (packets uint64, drops bool) {
	counts, ends := false, false
	for _, elem := range rule.elements(unix.NFTA_RULE_EXPRESSIONS) {
		a := decode(elem)
		switch a.string(unix.NFTA_EXPR_NAME) {
		case "counter":
			packets, counts = decode(a[unix.NFTA_EXPR_DATA]).long(unix.NFTA_COUNTER_PACKETS)
		case "immediate":
			ends = ends || canonicalElem(elem, nil) == drop
		}
	}
	return packets, counts && ends
}
