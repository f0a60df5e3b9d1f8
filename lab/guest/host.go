package guest

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/netns"
)

// HostSuffices reports whether this machine's own kernel has the drivers for which guests exist. It needs root.
func HostSuffices() (bool, error) {
	ns, err := netns.New()
	if err != nil {
		return false, err
	}
	defer func() { _ = ns.Close() }()
	enough := true
	err = ns.Do(func() error {
		for _, kind := range []string{"wireguard", "geneve"} {
			err := netlink.LinkAdd(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: kind}, LinkType: kind})
			switch {
			case errors.Is(err, unix.EOPNOTSUPP):
				enough = false
			case err != nil && !errors.Is(err, unix.EINVAL): // parameters are missing
				return fmt.Errorf("probe for links of kind %s: %w", kind, err)
			}
		}
		return nil
	})
	return enough, err
}
