package peering

// Drifts is how often helpers brought back, in the kernels of the gateway and of all nodes, what other hands had
// changed.
func (p PeeringStatus) Drifts() int64 {
	times := p.Drift.Times
	for _, n := range p.Nodes {
		times += n.Drift.Times
	}
	return times
}
