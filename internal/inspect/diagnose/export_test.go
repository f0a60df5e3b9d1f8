package diagnose

import (
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/pathtest"
)

// OfProbed is Of with the results of packets.
func OfProbed(paths []pathtest.Check, snapshots ...*observe.Snapshot) (Result, error) {
	var all []*facts
	for _, s := range snapshots {
		f := factsOf(s)
		f.paths, f.Errors[packets] = paths, nil
		all = append(all, f)
	}
	sides, err := sidesOf("", all)
	if err != nil {
		return Result{}, err
	}
	return evaluate(all, sides), nil
}
