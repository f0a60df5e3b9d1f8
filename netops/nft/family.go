package nft

import "github.com/google/nftables"

// Family is a table's family as nft(8) names it, which determines the packets of its chains. The zero value is IP.
type Family string

// The families that this package reads or writes.
const (
	IP   Family = "ip"   // IPv4
	IP6  Family = "ip6"  // IPv6
	Inet Family = "inet" // both; only for foreign chains
)

// number returns the family's number in enum nf_inet_proto of the kernel.
func (f Family) number() nftables.TableFamily {
	return map[Family]nftables.TableFamily{
		"": nftables.TableFamilyIPv4, IP: nftables.TableFamilyIPv4, IP6: nftables.TableFamilyIPv6, Inet: nftables.TableFamilyINet,
	}[f]
}
