package underlay

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// masquerade hides pods behind their node when they leave the pod network, as an ip-masq-agent does. Local
// destinations are left out: hairpin traffic is kube-proxy's.
const masquerade = `table ip lab-masquerade {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr %[1]s ip daddr != %[1]s fib daddr type != local masquerade
	}
}
`

// Masquerade makes what pods of podCIDR send to other networks leave with the node's address.
func (m Member) Masquerade(podCIDR netip.Prefix) error {
	return m.Namespace.Do(func() error {
		cmd := exec.CommandContext(context.Background(), "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(fmt.Sprintf(masquerade, podCIDR))
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("masquerade %s: %w: %s", podCIDR, err, bytes.TrimSpace(said.Bytes()))
		}
		return nil
	})
}
