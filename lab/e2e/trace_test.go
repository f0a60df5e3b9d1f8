package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// traced has the fields of `network trace -o json` that tests use.
type traced struct {
	Crosses     bool
	There, Back []struct{ Cluster, Kind, Name, Dropped string }
	Live        struct {
		Arrived, Answered bool
		Last              string
		Places            []struct {
			Cluster, Kind, Name, Route string
			There                      []struct{ Out, Dropped string }
			Errors                     []string
		}
	}
}

// testTrace follows packets between two pods: as they should go, and to a node on which a table of others drops them.
func testTrace(ctx context.Context, t *testing.T, u users) {
	l := u.admin.lab
	from, to := podOn(ctx, t, l, "a", "a-1"), podOn(ctx, t, l, "b", "b-2")
	trace := func(c liqoctl, args []string, holds func(r traced, code int) bool) (r traced) {
		t.Helper()
		args = append([]string{"network", "trace", "--port", "9", "--context", "a", "--remote-context", "b", "-o", "json"}, args...)
		var text string
		await(ctx, t, func() bool {
			out, said, code := c.run(ctx, t, args...)
			r, text = traced{}, fmt.Sprintf("exit code %d\n%s%s", code, out, said)
			return json.Unmarshal([]byte(out), &r) == nil && holds(r, code)
		}, func() string { return text })
		return r
	}
	// Level view is enough for addresses.
	trace(u.looker, []string{from.IP, "b-2", "--protocol", "icmp"}, func(r traced, code int) bool {
		return code == 0 && r.Crosses && len(r.There) == 4 && len(r.Back) == 4
	})
	live := []string{"default/" + from.Name, "default/" + to.Name, "--live"}
	r := trace(u.installer, live, func(r traced, code int) bool { return code == 0 && r.Crosses && r.Live.Arrived && r.Live.Answered })
	for _, p := range r.Live.Places {
		if len(p.There) == 0 || p.Route == "" || len(p.Errors) > 0 {
			t.Errorf("at %s %s of %s: %+v", p.Kind, p.Name, p.Cluster, p)
		}
	}
	inNode(ctx, t, u.admin, "b-2", "nft 'add table inet fault; add chain inet fault strict { type filter hook forward priority 5; }; add rule inet fault strict tcp dport 9 drop'")
	r = trace(u.installer, live, func(r traced, code int) bool {
		return code == 3 && !r.Crosses && r.There[len(r.There)-1].Dropped == "" && strings.HasPrefix(r.Live.Last, "dropped at node b-2 of b")
	})
	if !strings.HasSuffix(r.Live.Last, "of chain strict of table inet fault") {
		t.Error(r.Live.Last)
	}
	inNode(ctx, t, u.admin, "b-2", "nft delete table inet fault")
	for _, node := range []string{"a-1", "b-2"} {
		if tables := inNode(ctx, t, u.admin, node, "nft list tables"); strings.Contains(tables, "lqn-trace") {
			t.Errorf("left on %s:\n%s", node, tables)
		}
	}
}
