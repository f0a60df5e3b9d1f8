package network

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
)

// manyAnswer is the answer of `network status --contexts`.
type manyAnswer struct {
	Healthy  bool          `json:"healthy"` // all peerings are, and every cluster was read
	Clusters []clusterView `json:"clusters"`
}

// clusterView has the peerings of a cluster, or the error of reading them.
type clusterView struct {
	Context  string           `json:"context"`
	Peerings []status.Peering `json:"peerings"`
	Error    string           `json:"error,omitempty"`
}

// printMany prints the peerings of several clusters as a matrix.
func (o statusOptions) printMany(ctx context.Context, env *cli.Env, clusters []*kube.Cluster, do statusActions) error {
	answer := manyAnswer{Healthy: true, Clusters: make([]clusterView, len(clusters))}
	var reads sync.WaitGroup
	for i, c := range clusters {
		reads.Go(func() {
			v := clusterView{Context: c.Context, Peerings: []status.Peering{}}
			own := o
			own.Cluster = c
			all, err := do.once(ctx, own.Options)
			if err != nil {
				v.Error = progress.WithoutRequests(err).Error()
			} else {
				v.Peerings = append(v.Peerings, own.answer(all).Peerings...)
			}
			answer.Clusters[i] = v
		})
	}
	reads.Wait()
	for _, c := range answer.Clusters {
		answer.Healthy = answer.Healthy && c.Error == ""
		for _, p := range c.Peerings {
			answer.Healthy = answer.Healthy && p.State == health.Healthy
		}
	}
	if err := cli.Answer(env, o.output, answer, matrix); err != nil {
		return err
	}
	return cli.ErrUnhealthy.Unless(answer.Healthy)
}

// matrix formats the state of each peering, as the cluster of its row sees it.
func matrix(b *strings.Builder, a manyAnswer) {
	rows := [][]string{{""}}
	var notes strings.Builder
	column := make(map[string]int) // by the name of a cluster
	for i, c := range a.Clusters {
		rows[0] = append(rows[0], c.Context)
		for _, p := range c.Peerings {
			column[p.Cluster] = i + 1
		}
		if c.Error != "" {
			ui.Writef(&notes, "%s: %s\n", c.Context, c.Error)
		}
	}
	for _, c := range a.Clusters {
		row := make([]string, 1+len(a.Clusters))
		row[0] = c.Context
		for i := range a.Clusters {
			row[i+1] = ui.Unknown
		}
		for _, p := range c.Peerings {
			if at := column[p.Peer]; at > 0 {
				row[at] = string(p.State)
			} else {
				ui.Writef(&notes, "%s: peering with %s, which was not read: %s\n", c.Context, p.Peer, p.State)
			}
			if p.State != health.Healthy {
				ui.Writef(&notes, "%s: %s is %s: %s\n  next: %s\n", c.Context, p.Peer, p.State, p.Reason, p.Next)
			}
		}
		rows = append(rows, row)
	}
	_ = ui.Table(b, rows) // a strings.Builder takes everything
	fmt.Fprint(b, notes.String())
}
