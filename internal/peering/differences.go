package peering

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// DifferenceError says that what is in the clusters differs from what was asked for, and that nothing was
// changed.
type DifferenceError struct {
	Lines []string // one for each difference
}

func (e *DifferenceError) Error() string {
	return "this is there already, and differs:\n  " + strings.Join(e.Lines, "\n  ")
}

// Hint names the flag that applies the differences.
func (e *DifferenceError) Hint() string { return "to change it, run the same command with --update" }

// decideDifferences is the end of a comparison: differences need the user's word.
func decideDifferences(lines []string, update bool, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case len(lines) == 0:
		return "no differences", nil
	case !update:
		return "", &DifferenceError{Lines: lines}
	}
	return fmt.Sprintf("%d differences, to be applied", len(lines)), nil
}

// differences lists what an existing installation has otherwise than it should. What is missing is no
// difference: it is completed.
func (s *site) differences(ctx context.Context) ([]string, error) {
	have := s.found.fabric
	if have == nil {
		return nil, nil
	}
	want := s.fabric
	if ready := s.readyNodes(); len(ready) > 0 && want.Overlay.Kind != "" && unreported(s.found.reports, ready) == "" {
		decided, err := withReports(want, s.reporting(), s.Overlay)
		if err != nil {
			return nil, fmt.Errorf("cluster %q: %w", s.Cluster.Context, err)
		}
		want = decided
	}
	fabric, err := fabricObject(s.Cluster.Namespace, want)
	if err != nil {
		return nil, err
	}
	objects := []cluster.Object{fabric}
	if s.standing != "" {
		if err := s.keepInstallation(); err != nil {
			return nil, err
		}
	} else {
		base, err := s.base()
		if err != nil {
			return nil, err
		}
		objects = append(base, fabric)
	}
	lines, err := s.planned(ctx, objects...)
	if err != nil {
		return nil, err
	}
	service, err := s.translationDifferences(ctx)
	return slices.Concat(lines, service, s.newReservations()), err
}

// planned lists what applying the objects would change of those that exist.
func (s *site) planned(ctx context.Context, objects ...cluster.Object) ([]string, error) {
	changes, err := s.Cluster.Plan(ctx, objects...)
	if err != nil {
		return nil, err
	}
	return changeLines(s.Cluster.Context, changes), nil
}

// newReservations lists ranges that the user wants reserved and that are not yet, and pools that are others.
func (s *site) newReservations() []string {
	var lines []string
	if s.Pools != nil && !slices.Equal(s.Pools, s.found.pools) {
		lines = append(lines, fmt.Sprintf("cluster %q: pools: %s -> %s", s.Cluster.Context, joined(s.found.pools), joined(s.Pools)))
	}
	for _, p := range s.Reserved {
		if !slices.Contains(s.found.reserved, p.Masked()) {
			lines = append(lines, fmt.Sprintf("cluster %q: %s is not reserved yet", s.Cluster.Context, p.Masked()))
		}
	}
	return lines
}

// changeLines makes a line of each field that a change concerns.
func changeLines(context string, changes []cluster.Change) []string {
	var lines []string
	for _, c := range changes {
		if c.Action != cluster.Changed {
			continue
		}
		for _, field := range c.Fields {
			if strings.HasPrefix(field, "metadata.annotations."+templates.AnnotationDigest) {
				continue // it follows from the others
			}
			field = strings.TrimPrefix(field, "data."+records.DataKey+".")
			lines = append(lines, fmt.Sprintf("cluster %q: %s %s: %s", context, c.Kind, c.Name, field))
		}
	}
	return lines
}

// fabricDifferences lists what the nodes' reports change in a fabric that was decided.
func fabricDifferences(context string, have, want records.Fabric) []string {
	var lines []string
	if have.Overlay.Kind != want.Overlay.Kind {
		lines = append(lines, fmt.Sprintf("cluster %q: overlay: %s -> %s", context, have.Overlay.Kind, want.Overlay.Kind))
	}
	if have.MTU != want.MTU {
		lines = append(lines, fmt.Sprintf("cluster %q: mtu: %d -> %d", context, have.MTU, want.MTU))
	}
	return lines
}
