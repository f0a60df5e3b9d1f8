package commands

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/cluster"
)

func TestGuard(t *testing.T) {
	var out strings.Builder
	guard := func(ranges []netip.Prefix, failed error) error {
		out.Reset()
		return parse(t, func(env *Env, local *clusterFlags) *cobra.Command {
			env.Out = &out
			return newNetworkGuard(env, local, func(_ context.Context, c *cluster.Cluster) ([]netip.Prefix, uint16, error) {
				if c.Context != "a" {
					t.Errorf("context %s", c.Context)
				}
				return ranges, 6191, failed
			})
		})
	}
	if err := guard([]netip.Prefix{pfx("10.71.0.0/16"), pfx("10.72.0.0/16")}, nil); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"elements = { 10.71.0.0/16, 10.72.0.0/16 }\n", "udp dport 6191 counter drop\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := guard(nil, errAsked); !errors.Is(err, errAsked) || out.Len() > 0 {
		t.Errorf("error %v, printed %q", err, out.String())
	}
}
