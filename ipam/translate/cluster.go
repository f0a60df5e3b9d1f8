package translate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Cluster translates addresses for all peerings of a cluster. The zero value has no peerings.
type Cluster struct {
	peers   map[string]Translator
	seen    table                    // addresses by which this cluster reaches its peers
	damaged map[string]*DamagedError // peerings whose records cannot be read, by name
}

// NewCluster combines translators. It rejects two peerings of the same name, and two peers that this cluster reaches by
// the same addresses.
func NewCluster(translators ...Translator) (Cluster, error) {
	c := Cluster{peers: make(map[string]Translator, len(translators))}
	var all []entry
	for _, t := range translators {
		if _, ok := c.peers[t.peer]; ok {
			return Cluster{}, fmt.Errorf("two peerings %q", t.peer)
		}
		c.peers[t.peer] = t
		all = append(all, t.importedBack...)
	}
	var err error
	c.seen, err = newTable(all...)
	return c, err
}

// Peers returns the names of the peerings whose records can be read, sorted.
func (c Cluster) Peers() []string { return slices.Sorted(maps.Keys(c.peers)) }

// Peer returns the translator of one peering. The error is a *DamagedError or an *UnknownPeerError.
func (c Cluster) Peer(name string) (Translator, error) {
	if err, ok := c.damaged[name]; ok {
		return Translator{}, err
	}
	t, ok := c.peers[name]
	if !ok {
		return Translator{}, &UnknownPeerError{name}
	}
	return t, nil
}

// Whose returns the owner of an address by which this cluster reaches a peer: the peer, the kind of the address and the
// peer's own address. The error is an *UnmappedError or, if the address may belong to a peer whose record cannot be
// read, the error of Damage.
func (c Cluster) Whose(a netip.Addr) (Address, error) {
	answer, ok := c.seen.translate(a)
	switch {
	case ok:
		return answer, nil
	case len(c.damaged) > 0:
		return Address{}, c.Damage()
	}
	return Address{}, &UnmappedError{Address: a, What: "an address by which a peer is reached"}
}
