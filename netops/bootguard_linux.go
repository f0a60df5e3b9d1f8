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

// HasBootGuard reports whether BootTable stands.
func (k *Kernel) HasBootGuard() (bool, error) { return k.nft.Has(BootTable) }

// LiftBootGuard removes BootTable, whatever it holds; that there is none is no error, and costs one question. The
// node's own guard must stand.
func (k *Kernel) LiftBootGuard() error {
	stands, err := k.HasBootGuard()
	if err == nil && stands {
		err = k.nft.Apply(nft.Diff(nft.Table{Name: BootTable}, nft.Table{}))
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("lift the boot guard: %w", err)
	}
	return nil
}
