package network

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inspect/report"
	"liqonet.io/liqonet/internal/progress"
)

func newReport(env *cli.Env, local *cli.ClusterFlags, do cli.Operation[report.Options, report.Result]) *cobra.Command {
	var o report.Options
	var file string
	cmd := &cobra.Command{
		Use:   "report [FILE]",
		Short: "Collect what a bug report needs, without secrets",
		Long: `Collect what a bug report needs, and write it to a compressed tar file: objects of liqonet, nodes and events, logs of
helpers and gateways, status, the result of network diagnose, and versions. The logs have the state of the kernels: links, routes,
rules and nftables. With a remote cluster, both clusters are in the file. The command changes nothing in the clusters.

Data of Secrets, values of environment variables, annotations and ConfigMaps of others, keys, tokens and passwords are removed. Names
and addresses of nodes and pods remain: read the file before you publish it. Objects that you cannot read are skipped
and listed; level view is enough for all but the logs, which Kubernetes' own role view includes.`,
		Example: `  liqoctl network report --context a --remote-context b
  liqoctl network report --context a report.tar.gz`,
		Args: cli.Arguments("[FILE]"),
	}
	clusters := cli.NewTwoClusters(cmd, local)
	return cli.Action[report.Options, report.Result]{
		Text: describeReport, Timeout: &o.Timeout,
		Do: func(ctx context.Context, o report.Options, r progress.Reporter) (report.Result, error) {
			result, err := do(ctx, o, r)
			if err != nil {
				return result, err
			}
			result.File = file
			return result, ui.WriteFile(file, 0o600, result.Write)
		},
		Options: func(args []string) (_ report.Options, err error) {
			file = cmp.Or(strings.Join(args, ""), time.Now().UTC().Format("liqonet-report-20060102-150405.tar.gz"))
			o.Build = env.Build
			o.Cluster, o.Remote, err = clusters.ConnectChosen(env)
			return o, err
		},
	}.Command(env, cmd)
}

// describeReport formats the answer of `network report` as text.
func describeReport(b *strings.Builder, r report.Result) {
	ui.Writef(b, "%s: %d files\n", r.File, r.Files)
	for _, what := range r.Unread {
		ui.Writef(b, "not read: %s\n", what)
	}
}
