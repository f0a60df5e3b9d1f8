package kernel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/netops/nft"
)

// BootTable is an nftables table that a node loads when it boots, before its pods run. It blocks traffic to peers. This
// package does not create it.
const BootTable = "liqonet-boot"

// bootSet is the set of BootTable with the ranges of peers.
const bootSet = "peers"

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

// BootRanges returns the ranges that BootTable blocks: the elements of its set "peers". It is an error if the table for
// IPv4 exists and has no such set.
func (k *Kernel) BootRanges() ([]netip.Prefix, error) {
	if exists, err := k.nft.Has(nft.IP, BootTable); err != nil || !exists {
		return nil, err
	}
	table, err := k.nft.Observe(nft.IP, BootTable)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(table.Sets, func(s nft.Set) bool { return s.Name == bootSet })
	if i < 0 {
		return nil, fmt.Errorf("table %s has no set %q with the ranges of peers", BootTable, bootSet)
	}
	s := table.Sets[i]
	if s.Foreign != "" && len(s.Elements) == 0 { // with elements: nft(8) has merged ranges
		return nil, fmt.Errorf("table %s, set %q: %s", BootTable, bootSet, s.Foreign)
	}
	return s.Elements, nil
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
