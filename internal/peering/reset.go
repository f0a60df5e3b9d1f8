package peering

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"liqonet.io/liqonet/templates"
)

// Reset removes liqonet from a cluster: the node helpers, once they have emptied their kernels, and every object.
// Peerings that stand are an error, unless Force removes them too, on this side only.
func Reset(ctx context.Context, o ResetOptions, r Reporter) (ResetResult, error) {
	ctx, cancel := within(ctx, o.Timeout)
	defer cancel()
	s := &resetter{run: stages{reporter: r}}
	s.withdrawal = withdrawal{cluster: o.Side.Cluster, reporter: r, force: o.Force}
	steps := []struct {
		stage string
		step  func(context.Context) (string, error)
	}{{stageReach, s.reach}, {stageWithdraw, s.withdraw}, {stageUninstall, s.remove}}
	var err error
	for _, step := range steps {
		if err = s.run.run(ctx, step.stage, "", step.step); err != nil {
			break
		}
	}
	result := ResetResult{Removal: s.removal(s.peers), Stages: s.run.times, Changed: s.altered()}
	return result, err
}

// PlanReset returns what Reset would change, and changes nothing.
func PlanReset(ctx context.Context, o ResetOptions, r Reporter) (Plan, error) {
	o.Side.Cluster = o.Side.Cluster.DryRun()
	if _, err := Reset(ctx, o, planning{r}); err != nil {
		return Plan{}, err
	}
	return planOf(ctx, o.Side.Cluster)
}

// resetter is a reset on its way.
type resetter struct {
	leaving
	run stages
}

// reach finds out what is there, and refuses what stands.
func (s *resetter) reach(ctx context.Context) (string, error) {
	if _, err := s.cluster.Version(ctx); err != nil {
		return "", err
	}
	if err := checkPermissions(ctx, s.cluster, templates.Administer); err != nil {
		return "", err
	}
	// A second installation can be removed, and the first one stays.
	_, err := checkElsewhere(ctx, s.cluster)
	if elsewhere, ok := errors.AsType[*ElsewhereError](err); ok {
		s.run.reporter.Note(elsewhere.Error() + ": only its remains are removed")
	} else if err != nil {
		return "", err
	}
	all, err := traces(ctx, s.cluster)
	if err != nil {
		return "", err
	}
	for _, t := range all {
		s.peers = append(s.peers, t.name)
	}
	if len(s.peers) > 0 && !s.force {
		return "", withHint(
			fmt.Errorf("cluster %q has peerings: %s", s.cluster.Context, strings.Join(s.peers, ", ")),
			"liqoctl network disconnect, or --force to remove them on this side only")
	}
	return s.cluster.Context, nil
}

// withdraw removes the peerings.
func (s *resetter) withdraw(ctx context.Context) (string, error) {
	for _, name := range s.peers {
		if err := s.end(ctx, name); err != nil {
			return "", err
		}
		if err := s.clean(ctx, name); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d peerings", len(s.peers)), nil
}

func (s *resetter) remove(ctx context.Context) (string, error) {
	err := s.uninstall(ctx)
	return fmt.Sprintf("%d objects", len(s.changes)), err
}
