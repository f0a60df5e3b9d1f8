package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// completionTime limits the requests of a completion: the user waits for it between two keystrokes.
const completionTime = 2 * time.Second

// names lists names that exist in a cluster.
type names func(context.Context, *kube.Cluster) ([]string, error)

// AddCompletions completes names of peers, namespaces and owners in all commands, and files only where files are meant.
func AddCompletions(env *Env, root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	for _, cmd := range root.Commands() {
		addCompletionsBelow(env, cmd)
	}
	ui.Complete(root, ConfigFlag, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
}

func addCompletionsBelow(env *Env, cmd *cobra.Command) {
	byFlag := map[string]names{"peer": peers, "to": peers, "from": peers, "seen-by": peers, "namespace": namespaces, RemotePrefix + "namespace": namespaces, "owner": owners}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case byFlag[f.Name] != nil:
			ui.Complete(cmd, f.Name, env.completeFromCluster(f.Name, byFlag[f.Name]))
		case f.Value.Type() == "FILE":
			ui.Complete(cmd, f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		case f.Value.Type() == "FOLDER":
			ui.Complete(cmd, f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs))
		}
	})
	if strings.HasSuffix(cmd.Use, "[PEER]") {
		cmd.ValidArgsFunction = env.completeFromCluster("", peers)
	}
	for _, sub := range cmd.Commands() {
		addCompletionsBelow(env, sub)
	}
}

// completeFromCluster completes with names from the selected cluster; for a flag about the remote cluster, from that
// one.
func (e *Env) completeFromCluster(flag string, list names) cobra.CompletionFunc {
	prefix := ""
	if strings.HasPrefix(flag, RemotePrefix) {
		prefix = RemotePrefix
	}
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		found, err := e.answers(cmd, prefix, list)
		if err != nil {
			cobra.CompDebugln(err.Error(), false)
		}
		slices.Sort(found)
		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

func (e *Env) answers(cmd *cobra.Command, prefix string, list names) ([]string, error) {
	config := ""
	if f := cmd.Flag(ConfigFlag); f != nil {
		config = f.Value.String()
	}
	if err := ApplySettings(e, cmd, config); err != nil { // no command runs, which would do it
		return nil, err
	}
	local, chosen := NewClusterFlags(), NewClusterFlags()
	local.copyFlags(cmd, "")
	if chosen.copyFlags(cmd, prefix); prefix != "" {
		chosen.Inherit(local)
	}
	c, err := chosen.Connect(e)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	return list(ctx, c)
}

// copyFlags copies the flags of a command whose names begin with prefix.
func (c *ClusterFlags) copyFlags(cmd *cobra.Command, prefix string) {
	for name, to := range map[string]*string{
		"kubeconfig": &c.Config.File, "context": &c.Config.Context, "cluster": &c.Config.Cluster, "user": &c.Config.User,
		"namespace": &c.Config.Namespace, "request-timeout": &c.Config.RequestTimeout,
	} {
		if given := cmd.Flag(prefix + name); given != nil {
			*to = given.Value.String()
		}
	}
}

func peers(ctx context.Context, c *kube.Cluster) ([]string, error) {
	all, err := kube.All[*corev1.ConfigMap](ctx, c, "")
	var found []string
	for _, object := range all {
		if id, _ := records.IdentityOf(object.Name); id.Component == records.ComponentPeering {
			found = append(found, id.Peering)
		}
	}
	return found, err
}

func namespaces(ctx context.Context, c *kube.Cluster) ([]string, error) {
	all, err := kube.All[*corev1.Namespace](ctx, c, "")
	found := make([]string, len(all))
	for i, object := range all {
		found[i] = object.Name
	}
	return found, err
}

// owners returns the users with reservations.
func owners(ctx context.Context, c *kube.Cluster) ([]string, error) {
	registry, err := inventory.Reservations(ctx, c)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, r := range registry.List() {
		if name, ok := strings.CutPrefix(string(r.Owner), string(ipam.User(""))); ok {
			found = append(found, name)
		}
	}
	return found, nil
}
