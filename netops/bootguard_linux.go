package netops

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops/nft"
)

// BootTable is a table of nftables that a node loads by itself when it boots, before any of its pods runs: it holds
// back what is for peers. It is not of this package's making.
const BootTable = "liqonet-boot"

// bootFamilies are those in which BootTable can stand.
var bootFamilies = []nft.Family{nft.IP, nft.IP6}

// HasBootGuard reports whether BootTable stands, in either family.
func (k *Kernel) HasBootGuard() (bool, error) {
	for _, family := range bootFamilies {
		if stands, err := k.nft.Has(family, BootTable); stands || err != nil {
			return stands, err
		}
	}
	return false, nil
}

// LiftBootGuard removes BootTable, whatever it holds; that there is none is no error, and costs a request a family. The
// node's own guard must stand.
func (k *Kernel) LiftBootGuard() error {
	var errs []error
	for _, family := range bootFamilies {
		stands, err := k.nft.Has(family, BootTable)
		if err == nil && stands {
			err = k.nft.Apply(nft.Diff(nft.Table{Family: family, Name: BootTable}, nft.Table{}))
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("lift the boot guard: %w", err))
		}
	}
	return errors.Join(errs...)
}
