package netops

// joined returns the desired state of a namespace from its configuration for each address family, IPv4 first: what the
// families share, of the first, and the paths of each. Callers configure IPv4 alone. IPv6 needs more: the packet filter
// drops it (firewall6), rules without addresses have no family, and package kernel reads and writes IPv4 alone.
func joined[C any](families []C, shared, paths func(C) State) State {
	s := shared(families[0])
	for _, c := range families {
		p := paths(c)
		s.Addresses = append(s.Addresses, p.Addresses...)
		s.Neighbours = append(s.Neighbours, p.Neighbours...)
		s.Nexthops = append(s.Nexthops, p.Nexthops...)
		s.Groups = append(s.Groups, p.Groups...)
		s.Routes = append(s.Routes, p.Routes...)
		s.Rules = append(s.Rules, p.Rules...)
	}
	return s
}
