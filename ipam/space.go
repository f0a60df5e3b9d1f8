package ipam

import (
	"math/bits"
	"net/netip"
	"slices"
)

// space is a set of reservations by range: a binary trie for each family, a bit of the address a level, in
// which every node knows the lengths of the free blocks below it. The zero value is empty. Its shape is a
// function of what it holds.
type space struct {
	v4, v6 *node
}

func (s *space) root(a netip.Addr) **node {
	if a.Is4() {
		return &s.v4
	}
	return &s.v6
}

func (s *space) insert(r Reservation) {
	root := s.root(r.Range.Addr())
	*root = (*root).insert(r, 0)
}

func (s *space) remove(r Reservation) {
	root := s.root(r.Range.Addr())
	*root = (*root).remove(r, 0)
}

// conflict returns a reservation that want may not overlap: the widest around it, else the lowest inside.
func (s *space) conflict(want Reservation) (Reservation, bool) {
	collides := func(r Reservation) bool { return !want.overlapAllowed(r) }
	n := *s.root(want.Range.Addr())
	for depth := 0; n != nil && depth < want.Range.Bits(); depth++ {
		if i := slices.IndexFunc(n.held, collides); i >= 0 {
			return n.held[i], true
		}
		n = n.child[bit(want.Range.Addr(), depth)]
	}
	for r := range n.all {
		if collides(r) {
			return r, true
		}
	}
	return Reservation{}, false
}

// holders yields the reservations that contain a range, the widest first.
func (s *space) holders(p netip.Prefix) []Reservation {
	var found []Reservation
	n := *s.root(p.Addr())
	for depth := 0; n != nil; depth++ {
		found = append(found, n.held...)
		if depth == p.Bits() {
			break
		}
		n = n.child[bit(p.Addr(), depth)]
	}
	return found
}

// inside returns the reservations whose range lies in p, in order.
func (s *space) inside(p netip.Prefix) []Reservation {
	n := *s.root(p.Addr())
	for depth := 0; n != nil && depth < p.Bits(); depth++ {
		n = n.child[bit(p.Addr(), depth)]
	}
	return slices.Collect(n.all)
}

// all yields every reservation in order, IPv4 first.
func (s *space) all(yield func(Reservation) bool) {
	if s.v4.walk(yield) {
		s.v6.walk(yield)
	}
}

// free returns the node at p, nil when nothing in p is held, and false when p is held from around.
func (s *space) free(p netip.Prefix) (*node, bool) {
	n := *s.root(p.Addr())
	for depth := 0; n != nil && depth < p.Bits(); depth++ {
		if len(n.held) > 0 {
			return nil, false
		}
		n = n.child[bit(p.Addr(), depth)]
	}
	return n, true
}

// fit returns a free range of that length in pool: the lowest of the smallest free blocks that have room, so
// that large blocks stay whole.
func (s *space) fit(pool netip.Prefix, length int) (netip.Prefix, bool) {
	n, ok := s.free(pool)
	if !ok {
		return netip.Prefix{}, false
	}
	block, ok := n.free(pool.Bits()).longest(length)
	if !ok {
		return netip.Prefix{}, false
	}
	at := pool
	for n != nil {
		side := 0
		if !n.child[0].free(at.Bits() + 1).has(block) {
			side = 1
		}
		n, at = n.child[side], half(at, side)
	}
	return netip.PrefixFrom(at.Addr(), length), true
}

// lowest returns the lowest free address of p that is not below from.
func (s *space) lowest(p netip.Prefix, from netip.Addr) (netip.Addr, bool) {
	n, ok := s.free(p)
	if !ok {
		return netip.Addr{}, false
	}
	return n.lowest(p, from)
}

// node stands for a range: the path of bits that leads to it. A nil node is a range in which nothing is held.
type node struct {
	child  [2]*node
	held   []Reservation // of exactly this range, sorted
	blocks lengths       // of the maximal free blocks below; none where the range itself is held
}

// free returns the lengths of the maximal free blocks of a node at that depth.
func (n *node) free(depth int) lengths {
	if n == nil {
		return lengths{}.with(depth)
	}
	return n.blocks
}

// settle brings the node in line with its children and drops it when nothing is left.
func (n *node) settle(depth int) *node {
	switch {
	case len(n.held) > 0:
		n.blocks = lengths{}
	case n.child[0] == nil && n.child[1] == nil:
		return nil
	default:
		n.blocks = n.child[0].free(depth + 1).union(n.child[1].free(depth + 1))
	}
	return n
}

func (n *node) insert(r Reservation, depth int) *node {
	if n == nil {
		n = &node{}
	}
	if depth == r.Range.Bits() {
		i, _ := slices.BinarySearchFunc(n.held, r, Reservation.Compare)
		n.held = slices.Insert(n.held, i, r)
	} else {
		side := &n.child[bit(r.Range.Addr(), depth)]
		*side = (*side).insert(r, depth+1)
	}
	return n.settle(depth)
}

func (n *node) remove(r Reservation, depth int) *node {
	if n == nil {
		return nil
	}
	if depth == r.Range.Bits() {
		n.held = slices.DeleteFunc(n.held, func(h Reservation) bool { return h == r })
	} else {
		side := &n.child[bit(r.Range.Addr(), depth)]
		*side = (*side).remove(r, depth+1)
	}
	return n.settle(depth)
}

func (n *node) all(yield func(Reservation) bool) { n.walk(yield) }

// walk is all, and reports whether it went to the end.
func (n *node) walk(yield func(Reservation) bool) bool {
	if n == nil {
		return true
	}
	for _, r := range n.held {
		if !yield(r) {
			return false
		}
	}
	return n.child[0].walk(yield) && n.child[1].walk(yield)
}

func (n *node) lowest(at netip.Prefix, from netip.Addr) (netip.Addr, bool) {
	switch {
	case last(at).Less(from):
		return netip.Addr{}, false
	case n == nil && at.Addr().Less(from):
		return from, true
	case n == nil:
		return at.Addr(), true
	case n.blocks == lengths{}:
		return netip.Addr{}, false
	}
	for side, c := range n.child {
		if a, ok := c.lowest(half(at, side), from); ok {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// lengths is a set of prefix lengths, 0 to 128.
type lengths [3]uint64

func (l lengths) with(n int) lengths {
	l[n/64] |= 1 << (n % 64)
	return l
}

func (l lengths) has(n int) bool { return l[n/64]&(1<<(n%64)) != 0 }

func (l lengths) union(o lengths) lengths { return lengths{l[0] | o[0], l[1] | o[1], l[2] | o[2]} }

// longest returns the largest length of the set that is at most limit.
func (l lengths) longest(limit int) (int, bool) {
	for w := limit / 64; w >= 0; w-- {
		word := l[w]
		if w == limit/64 {
			word &= 2<<(limit%64) - 1
		}
		if word != 0 {
			return w*64 + bits.Len64(word) - 1, true
		}
	}
	return 0, false
}
