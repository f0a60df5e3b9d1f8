package nft

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Dropped returns the number of packets dropped by the rules of a table that have a counter and a drop verdict, by
// chain. Chains without such a rule, and those of a missing table, are not included. A counter restarts when its rule
// is replaced.
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

// counted returns the value of a rule's counter, and whether the rule has a counter and drops.
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
