package translate

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Cluster answers for all peerings of a cluster. The zero value has none.
type Cluster struct {
	peers   map[string]Translator
	seen    table                    // all by which peers are reached
	damaged map[string]*DamagedError // peerings of which nothing is known, by name
}

// NewCluster puts translators together. It refuses two of the same name, and ranges by which two peers would be
// reached.
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

// Whose tells to which peer an address belongs, as this cluster calls it: the peer, what has the address, and
// how the peer itself calls it. The error is an *UnmappedError, or, where the address may be of a peer whose record
// cannot be read, that of Damage.
func (c Cluster) Whose(a netip.Addr) (Address, error) {
	answer, ok := c.seen.translate(a)
	if !ok && len(c.damaged) > 0 {
		return Address{}, c.Damage()
	}
	if !ok {
		return Address{}, &UnmappedError{Address: a, What: "an address by which a peer is reached"}
	}
	return answer, nil
}
