package netops

import "slices"

// Reachable returns s without the objects that depend on a device that does not exist yet.
func (s State) Reachable(have State) State {
	for _, l := range s.Links {
		if l.Kind != KindDevice || slices.ContainsFunc(have.Links, func(h Link) bool { return h.Name == l.Name }) {
			continue
		}
		s = withoutDependants(s, l.Name)
		s.Links = Only(s.Links, func(o Link) bool { return o.Name != l.Name })
	}
	return s
}
