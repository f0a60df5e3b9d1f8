package ipam

import (
	"fmt"
	"net/netip"

	"go4.org/netipx"
)

// unroutable are ranges that cannot be assigned to hosts outside the cluster: "this network", loopback, link-local,
// multicast and reserved (RFC 6890, RFC 5771, RFC 4291).
var unroutable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/8"),
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("ff00::/8"),
}

// routable rejects ranges that cannot be assigned to hosts.
func routable(p netip.Prefix) error {
	for _, u := range unroutable {
		if u.Overlaps(p) {
			return fmt.Errorf("%s overlaps %s, which is not for hosts", p, u)
		}
	}
	return nil
}

// canonical rejects invalid ranges, IPv4 ranges in IPv6 form and ranges with host bits.
func canonical(p netip.Prefix) error {
	switch {
	case !p.IsValid():
		return fmt.Errorf("invalid range %s", p)
	case p.Addr().Is4In6():
		return fmt.Errorf("%s is an IPv4 range in IPv6 form", p)
	case p != p.Masked():
		return fmt.Errorf("%s has host bits set, the range is %s", p, p.Masked())
	}
	return nil
}

// last returns the highest address of a range.
func last(p netip.Prefix) netip.Addr { return netipx.PrefixLastIP(p) }
