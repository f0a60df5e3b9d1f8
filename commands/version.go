package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// versionAnswer is the answer of `version`.
type versionAnswer struct {
	buildinfo.Info

	Helpers []helperVersion `json:"helpers,omitempty"`
}

// helperVersion is the image of helpers in a cluster; its tag is their version.
type helperVersion struct {
	Cluster string `json:"cluster"`
	Helper  string `json:"helper"` // such as "node", or "gateway b"
	Image   string `json:"image"`
	Pods    int    `json:"pods"`
}

func newVersion(env *cli.Env) *cobra.Command {
	output, clientOnly := ui.FormatText, false
	local, remote := cli.NewClusterFlags(), cli.NewRemoteFlags()
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of liqoctl and of the helpers in the clusters",
		Long: `Show the version of liqoctl, and the images of the helpers in the local cluster and, if it is given, in the remote
cluster. Without a kubeconfig, or with --client, the command shows the version of liqoctl only.`,
		Example: `  liqoctl version --context a --remote-context b
  liqoctl version --client -o jsonpath={.version}`,
		Args: cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionAnswer{Info: env.Build}
			var err error
			if !clientOnly {
				v.Helpers, err = helperVersions(cmd.Context(), env, local, remote)
			}
			if printed := cli.Answer(env, output, v, describeVersion); printed != nil {
				return printed
			}
			return err
		},
	}
	local.Register(cmd, cmd.Flags())
	remote.Register(cmd, cmd.Flags())
	ui.BoolFlag(cmd.Flags(), &clientOnly, "client", "connect to no cluster")
	ui.OutputFlag(cmd, &output)
	return cmd
}

// helperVersions asks the clusters that the flags choose. Where there is no kubeconfig, there is none to ask.
func helperVersions(ctx context.Context, env *cli.Env, local, remote *cli.ClusterFlags) ([]helperVersion, error) {
	all := []*cli.ClusterFlags{local}
	if remote.Chosen() {
		remote.Inherit(local)
		all = append(all, remote)
	}
	var found []helperVersion
	for _, flags := range all {
		if kubeconfig, err := flags.Config.Loader().RawConfig(); err == nil && kubeconfig.CurrentContext == "" && !flags.Chosen() {
			continue
		}
		c, err := flags.Reach(ctx, env)
		if err != nil {
			return found, err
		}
		helpers, err := helpersOf(ctx, c)
		if err != nil {
			return found, err
		}
		found = append(found, helpers...)
	}
	return found, nil
}

func helpersOf(ctx context.Context, c *kube.Cluster) ([]helperVersion, error) {
	pods, err := kube.All[*corev1.Pod](ctx, c, records.LabelComponent)
	if err != nil {
		return nil, err
	}
	counts := make(map[helperVersion]int)
	for _, pod := range pods {
		helper := pod.Labels[records.LabelComponent]
		if helper == records.ComponentFabric {
			helper = "node"
		}
		helper = strings.TrimSpace(helper + " " + pod.Labels[records.LabelPeering])
		for _, container := range pod.Spec.Containers {
			counts[helperVersion{Cluster: c.Context, Helper: helper, Image: container.Image}]++
		}
	}
	found := slices.SortedStableFunc(maps.Keys(counts), func(a, b helperVersion) int {
		return strings.Compare(a.Helper+" "+a.Image, b.Helper+" "+b.Image)
	})
	for i, v := range found {
		found[i].Pods = counts[v]
	}
	return found, nil
}

// addVersionFlag adds --version: the version of liqoctl alone. Cobra's own flag would link text/template.
func addVersionFlag(env *cli.Env, root *cobra.Command) {
	var version bool
	ui.BoolFlag(root.Flags(), &version, "version", "print the version of liqoctl")
	help := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if !version {
			return help(cmd, args)
		}
		_, err := fmt.Fprintln(env.Out, describeBuild(env.Build))
		return err
	}
}

// describeBuild is a line that names the build.
func describeBuild(i buildinfo.Info) string {
	commit := ""
	if i.Commit != "" {
		commit = " commit " + i.Commit
	}
	return fmt.Sprintf("liqoctl %s%s (%s, %s)", i.Version, commit, i.Go, i.Platform)
}

func describeVersion(b *strings.Builder, v versionAnswer) {
	ui.Writef(b, "%s\n", describeBuild(v.Info))
	if len(v.Helpers) > 0 {
		_ = ui.Columns[helperVersion]{
			{Title: "CLUSTER", Cell: func(h helperVersion) string { return h.Cluster }},
			{Title: "HELPER", Cell: func(h helperVersion) string { return h.Helper }},
			{Title: "IMAGE", Cell: func(h helperVersion) string { return h.Image }},
			{Title: "PODS", Cell: func(h helperVersion) string { return fmt.Sprint(h.Pods) }},
		}.Print(b, ui.FormatText, v.Helpers) // a builder takes everything
	}
}
