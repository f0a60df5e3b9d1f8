package kernel

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops/nft"
)

// BootTable is an nftables table that a node loads when it boots, before its pods run. It blocks traffic to peers. This
// package does not create it.
const BootTable = "liqonet-boot"

// bootFamilies are the families in which BootTable can exist.
var bootFamilies = []nft.Family{nft.IP, nft.IP6}

// HasBootGuard reports whether BootTable exists, in either family.
func (k *Kernel) HasBootGuard() (bool, error) {
	for _, family := range bootFamilies {
		if exists, err := k.nft.Has(family, BootTable); exists || err != nil {
			return exists, err
		}
	}
	return false, nil
}

// LiftBootGuard removes BootTable, whatever its content. A missing table is not an error, and costs one request per
// family. The node's own guard must be in place.
func (k *Kernel) LiftBootGuard() error {
	var errs []error
	for _, family := range bootFamilies {
		exists, err := k.nft.Has(family, BootTable)
		if err == nil && exists {
			err = k.nft.Apply(nft.Diff(nft.Table{Family: family, Name: BootTable}, nft.Table{}))
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("lift the boot guard: %w", err))
		}
	}
	return errors.Join(errs...)
}
