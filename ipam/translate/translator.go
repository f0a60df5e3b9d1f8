package translate

import (
	"fmt"
	"maps"
	"net/netip"

	"liqonet.io/liqonet/internal/cidr"
)

// Side is one cluster of a peering, with its addresses as the other cluster reaches them.
type Side struct {
	Pods []Mapping
	// External is the external CIDR: nodes are in the first half, exposed hosts in the second.
	External Mapping
}

// Config is the input of a Translator.
type Config struct {
	Peer string // name of the peering
	// Remote is the peer as this cluster reaches it.
	Remote Side
	// Local is this cluster as the peer reaches it. The zero value: not known, so that Export and ExportedFrom return a
	// LocalUnknownError.
	Local Side
	// Internal is this cluster's internal CIDR, of the same length as its external CIDR. Its first half belongs to
	// nodes. The zero value: nodes are known by their external addresses only.
	Internal netip.Prefix
	// Exposed maps the hosts outside this cluster that the peer reaches, by their own addresses, to their addresses in
	// the second half of this cluster's external CIDR. An address that is also in a pod CIDR is translated as a pod's.
	// nil: no host is known, and exposed hosts are known by their external addresses only.
	Exposed map[netip.Addr]netip.Addr
}

// Translator translates the addresses of one peering. The zero value translates no address.
type Translator struct {
	peer                       string
	imported, exported         table
	importedBack, exportedBack table
	localKnown                 bool
	exposed, hosts             map[netip.Addr]netip.Addr // external address by host, and the reverse
}

// New creates a translator. It rejects ranges with ambiguous translations: mappings of different lengths and
// overlapping ranges. Ranges of different peerings may overlap, so each peering has its own translator.
func New(c Config) (Translator, error) {
	t := Translator{peer: c.Peer, localKnown: len(c.Local.Pods) > 0 || c.Local.External != Mapping{}, exposed: maps.Clone(c.Exposed)}
	entries, err := c.Remote.entries(c.Peer)
	if err == nil {
		t.imported, t.importedBack, err = bothWays(entries, entries)
	}
	if err != nil {
		return Translator{}, fmt.Errorf("ranges of peer %q: %w", c.Peer, err)
	}
	if !t.localKnown {
		return t, nil
	}
	if err := t.addLocal(c); err != nil {
		return Translator{}, fmt.Errorf("ranges that peer %q reaches: %w", c.Peer, err)
	}
	return t, nil
}

// addLocal also maps the internal addresses of nodes. Inside this cluster, nodes use their internal addresses.
func (t *Translator) addLocal(c Config) error {
	entries, err := c.Local.entries(c.Peer)
	if err != nil {
		return err
	}
	back := entries
	if c.Internal.IsValid() {
		if c.Internal.Bits() != c.Local.External.Real.Bits() {
			return fmt.Errorf("internal CIDR %s and external CIDR %s: different lengths", c.Internal, c.Local.External.Real)
		}
		internal, _ := cidr.Halves(c.Internal)
		seen, exposed := cidr.Halves(c.Local.External.Seen)
		_, host := cidr.Halves(c.Local.External.Real)
		nodes := entry{from: internal, to: seen, kind: Node, peer: c.Peer}
		back = append(podEntries(c.Local.Pods, c.Peer), nodes, entry{from: host, to: exposed, kind: Exposed, peer: c.Peer})
		entries = append(entries, nodes)
	}
	if t.exported, t.exportedBack, err = bothWays(entries, back); err != nil {
		return err
	}
	return t.addHosts()
}

// addHosts builds the reverse mapping of exposed hosts.
func (t *Translator) addHosts() error {
	t.hosts = make(map[netip.Addr]netip.Addr, len(t.exposed))
	for host, external := range t.exposed {
		if as, ok := t.exported.translate(external); !ok || as.Kind != Exposed {
			return fmt.Errorf("host %s is exposed as %s: want an address of the external CIDR's second half", host, external)
		}
		if other, ok := t.hosts[external]; ok {
			return fmt.Errorf("hosts %s and %s are both exposed as %s", host, other, external)
		}
		t.hosts[external] = host
	}
	return nil
}

// bothWays creates the forward table of entries forth, and the reverse table of entries back.
func bothWays(forth, back []entry) (forward, reverse table, err error) {
	if forward, err = newTable(forth...); err != nil {
		return nil, nil, err
	}
	reverse, err = newTable(reversed(back)...)
	return forward, reverse, err
}

// entries returns the mappings of a side, each with its kind.
func (s Side) entries(peer string) ([]entry, error) {
	e := entry{from: s.External.Real, to: s.External.Seen, peer: peer}
	if err := e.check(); err != nil {
		return nil, err
	}
	if s.External.Real.IsSingleIP() {
		return nil, fmt.Errorf("external CIDR %s: want more than one address", s.External.Real)
	}
	nodes, exposed := cidr.Halves(s.External.Real)
	nodesSeen, exposedSeen := cidr.Halves(s.External.Seen)
	return append(podEntries(s.Pods, peer),
		entry{from: nodes, to: nodesSeen, kind: Node, peer: peer},
		entry{from: exposed, to: exposedSeen, kind: Exposed, peer: peer}), nil
}

func podEntries(pods []Mapping, peer string) []entry {
	entries := make([]entry, 0, len(pods)+3) // nodes by two addresses, and exposed hosts
	for _, m := range pods {
		entries = append(entries, entry{from: m.Real, to: m.Seen, kind: Pod, peer: peer})
	}
	return entries
}

// Peer returns the name of the peering.
func (t Translator) Peer() string { return t.peer }

// Import translates the peer's own address into the address by which this cluster reaches it. Nodes of the peer are
// identified by their external addresses. The error is an *UnmappedError.
func (t Translator) Import(a netip.Addr) (Address, error) {
	return found(t.imported, a, "an address of peer %q", t.peer)
}

// ImportedFrom translates an address by which this cluster reaches the peer into the peer's own address. The error is
// an *UnmappedError.
func (t Translator) ImportedFrom(a netip.Addr) (Address, error) {
	return found(t.importedBack, a, "an address by which peer %q is reached", t.peer)
}

// Export translates an address of this cluster into the address by which the peer reaches it. Nodes are identified by
// their internal or external addresses, exposed hosts by their own or external addresses. The error is an
// *UnmappedError or a *LocalUnknownError.
func (t Translator) Export(a netip.Addr) (Address, error) {
	if !t.localKnown {
		return Address{}, &LocalUnknownError{t.peer}
	}
	if answer, ok := t.exported.translate(a); ok {
		return answer, nil
	}
	if external, ok := t.exposed[a]; ok {
		answer, _ := t.exported.translate(external) // addHosts has verified that it is mapped
		answer.Given = a
		return answer, nil
	}
	return found(t.exported, a, "an address of this cluster that peer %q can reach", t.peer)
}

// ExportedFrom translates an address by which the peer reaches this cluster into this cluster's own address: for a node
// its internal address, for an exposed host its own address if it is known. The error is an *UnmappedError or a
// *LocalUnknownError.
func (t Translator) ExportedFrom(a netip.Addr) (Address, error) {
	if !t.localKnown {
		return Address{}, &LocalUnknownError{t.peer}
	}
	answer, err := found(t.exportedBack, a, "an address by which peer %q reaches this cluster", t.peer)
	if host, ok := t.hosts[answer.Translated]; ok {
		answer.Translated = host
	}
	return answer, err
}

func found(t table, a netip.Addr, what, peer string) (Address, error) {
	answer, ok := t.translate(a)
	if !ok {
		return Address{}, &UnmappedError{Address: a, What: fmt.Sprintf(what, peer)}
	}
	return answer, nil
}
