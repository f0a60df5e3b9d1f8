package underlay

import "fmt"

// BlockUDP returns commands of nft(8) for the router: it drops all UDP between the node networks of two clusters. They
// can be run again.
func BlockUDP(one, other string) string {
	const table = `table ip %[1]s {
	chain forward {
		type filter hook forward priority filter;
		iifname %[2]q oifname %[3]q meta l4proto udp drop
		iifname %[3]q oifname %[2]q meta l4proto udp drop
	}
}
`
	return AllowUDP(one, other) + fmt.Sprintf(table, udpTable(one, other), bridgeName(one), bridgeName(other))
}

// AllowUDP returns the commands that undo BlockUDP, or nothing.
func AllowUDP(one, other string) string {
	table := udpTable(one, other)
	return fmt.Sprintf("table ip %s\ndelete table ip %s\n", table, table)
}

func udpTable(one, other string) string {
	return fmt.Sprintf("lab-udp-%s-%s", min(one, other), max(one, other))
}
