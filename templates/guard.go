package templates

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

//go:embed guard/boot.nft
var bootGuard string

// BootGuard renders a file for nft(8) that a node loads when it boots. It holds back what is for peers, whose ranges
// are given in any order, and what comes to the overlay by IPv6, until the node's helper has put up the guard of its own. Without a peer there is none.
func BootGuard(peers []netip.Prefix, overlayPort uint16) (string, error) {
	if len(peers) == 0 {
		return "", errors.New("render the boot guard: no peers")
	}
	texts := make([]string, len(peers))
	for i, p := range peers {
		if !p.IsValid() || !p.Addr().Is4() {
			return "", fmt.Errorf("render the boot guard: %s is no range of IPv4 addresses", p)
		}
		texts[i] = p.Masked().String()
	}
	slices.Sort(texts)
	return strings.NewReplacer("RANGES", strings.Join(slices.Compact(texts), ", "), "PORT", strconv.Itoa(int(overlayPort))).Replace(bootGuard), nil
}
