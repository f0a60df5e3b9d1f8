package kernel

import (
	"errors"
	"maps"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
)

// Dropped returns the number of packets that our rules have dropped in the network namespace of the calling thread, by
// chain. It may be called while another goroutine uses a Kernel.
func Dropped() (packets map[string]uint64, err error) {
	c, err := nft.Open(current)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if packets, err = c.Dropped(nft.IP, netops.Table); err != nil {
		return nil, err
	}
	of6, err := c.Dropped(nft.IP6, netops.Table)
	maps.Copy(packets, of6) // chain names differ between the families
	return packets, err
}
