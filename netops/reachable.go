package netops

import "slices"

// Reachable returns s without what needs a link that others make and that is not there yet.
func (s State) Reachable(have State) State {
	for _, l := range s.Links {
		if l.Kind != KindDevice || slices.ContainsFunc(have.Links, func(h Link) bool { return h.Name == l.Name }) {
			continue
		}
		s.Links = slices.DeleteFunc(slices.Clone(s.Links), func(o Link) bool { return o.Name == l.Name })
		s.Addresses = slices.DeleteFunc(slices.Clone(s.Addresses), func(a Address) bool { return a.Link == l.Name })
		s.Routes = slices.DeleteFunc(slices.Clone(s.Routes), func(r Route) bool { return r.Link == l.Name })
	}
	return s
}
