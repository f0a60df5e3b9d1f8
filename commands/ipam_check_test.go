package commands

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/addresses"
	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/ipam"
)

// disorder is a check with a finding that a repair mends, and one that it does not.
func disorder(_ context.Context, o addresses.CheckOptions) (addresses.CheckResult, error) {
	c := addresses.CheckResult{Reservations: 12, Findings: []addresses.Finding{
		{
			Kind: addresses.Orphan, Why: `there is no peering "gone"`, Repair: addresses.ReleaseIt,
			Reservation: ipam.Reservation{Range: pfx("10.71.0.0/16"), Owner: ipam.Peering("gone"), Purpose: ipam.PeerPods},
		},
		{
			Kind: addresses.Overlap, Why: `reserve 10.81.0.0/16 for pod CIDR: conflict with peering "b" pods 10.81.0.0/16`,
			Hint:        `peering "b" needs other addresses: liqoctl network disconnect, then liqoctl network connect`,
			Reservation: ipam.Reservation{Range: pfx("10.81.0.0/16"), Owner: ipam.Cluster, Purpose: ipam.PodCIDR, Shared: true},
		},
	}}
	if o.Planned != nil {
		if err := o.Planned(c); err != nil {
			return c, err
		}
	}
	c.Findings[0].Repaired = o.Repair
	return c, nil
}

// check runs `ipam check` on what a check returns.
func check(t *testing.T, do addressCheck, args ...string) (out, said string, err error) {
	t.Helper()
	var stdout, stderr strings.Builder
	env := &Env{Out: &stdout, Err: &stderr}
	env.start(false)
	cmd := newIPAMCheck(env, func(context.Context) (*cluster.Cluster, error) {
		return addressBook(t), nil
	}, do)
	cmd.SetArgs(append([]string{}, args...)) // nil would stand for those of the test
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestIPAMCheck(t *testing.T) {
	out, _, err := check(t, disorder)
	if exitCode(t.Context(), err) != ExitUnhealthy {
		t.Errorf("error %v, want exit code %d", err, ExitUnhealthy)
	}
	golden(t, "ipam-check", out)
	out, _, err = check(t, disorder, "--repair", "--dry-run")
	if exitCode(t.Context(), err) != ExitUnhealthy || !strings.HasPrefix(out, "plan: release 10.71.0.0/16: ") || !strings.Contains(out, "0 of them repaired") {
		t.Errorf("dry run: error %v, output:\n%s", err, out)
	}
	out, _, err = check(t, disorder, "--repair")
	if !errors.Is(err, errDisorder) {
		t.Errorf("error %v though something is not repaired", err)
	}
	golden(t, "ipam-check-repair", out)
	out, said, _ := check(t, disorder, "--repair", "-o", "wide")
	golden(t, "ipam-check-wide", out)
	if strings.Contains(said, "plan:") {
		t.Errorf("the plan is told apart from the findings: %q", said)
	}
}

func TestIPAMCheckForPrograms(t *testing.T) {
	out, said, err := check(t, disorder, "--repair", "-o", "json")
	var got addresses.CheckResult
	if !errors.Is(err, errDisorder) || json.Unmarshal([]byte(out), &got) != nil || got.Open() != 1 || len(got.Findings) != 2 {
		t.Errorf("%v, answer %s", err, out)
	}
	if !strings.Contains(said, "plan: release 10.71.0.0/16") {
		t.Errorf("the plan is not on standard error: %q", said)
	}
}

func TestIPAMCheckInOrder(t *testing.T) {
	out, said, err := check(t, func(_ context.Context, o addresses.CheckOptions) (addresses.CheckResult, error) {
		if o.Repair || len(o.Overrides.PodCIDRs) != 1 {
			t.Errorf("options %+v", o)
		}
		return addresses.CheckResult{Reservations: 5, Notes: []string{"a note"}}, nil
	}, "--pod-cidr", "10.244.0.0/16")
	if err != nil || out != "5 reservations: no findings\n" || !strings.Contains(said, "a note") {
		t.Errorf("%v, stdout %q, stderr %q", err, out, said)
	}
	out, _, err = check(t, func(context.Context, addresses.CheckOptions) (addresses.CheckResult, error) {
		return addresses.CheckResult{Reservations: 5}, nil
	}, "-o", "wide")
	if err != nil || out != "5 reservations: no findings\n" {
		t.Errorf("wide: %v, %q", err, out)
	}
	if _, _, err := check(t, func(context.Context, addresses.CheckOptions) (addresses.CheckResult, error) {
		return addresses.CheckResult{}, errAsked
	}); !errors.Is(err, errAsked) {
		t.Errorf("error %v, want that of the check", err)
	}
}
