package echo

// schedule is a heap (container/heap) of probers, the one that has something to do first on top.
type schedule []*Prober

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	p := x.(*Prober)
	p.place = len(*s)
	*s = append(*s, p)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	p := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return p
}
