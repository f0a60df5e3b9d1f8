package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may have users of an auth-provider (OIDC)
	"k8s.io/client-go/tools/clientcmd/api"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// RemotePrefix begins the flags that speak of the other cluster.
const RemotePrefix = "remote-"

// ClusterFlags are the flags that choose a cluster: kubectl's own, or their twins for the remote cluster.
type ClusterFlags struct {
	prefix string // of the flags' names
	Config kube.Kubeconfig
}

// NewClusterFlags returns the flags of the local cluster.
func NewClusterFlags() *ClusterFlags {
	return &ClusterFlags{Config: kube.Kubeconfig{Namespace: records.DefaultNamespace, RequestTimeout: "0"}}
}

// NewRemoteFlags returns the flags of the remote cluster.
func NewRemoteFlags() *ClusterFlags {
	return &ClusterFlags{prefix: RemotePrefix} // the rest as the local cluster's: see inherit
}

// Register adds the flags to a command; persistent ones hold for its subcommands too.
func (c *ClusterFlags) Register(cmd *cobra.Command, flags *pflag.FlagSet) {
	which, shorthand, inherited := "local", ",n", ""
	if c.prefix != "" {
		which, shorthand, inherited = "remote", "", " (default: the local cluster's)"
	}
	add := func(to *string, name, kind, usage string, check func(string) error) {
		ui.TextFlag(flags, to, c.prefix+name, kind, strings.ReplaceAll(usage, "%s", which+" cluster"), check)
	}
	add(&c.Config.File, "kubeconfig", "FILE", "kubeconfig of the %s"+inherited, nil)
	add(&c.Config.Context, "context", "CONTEXT", "kube context of the %s", nil)
	add(&c.Config.Cluster, "cluster", "CLUSTER", "kubeconfig entry of the %s, instead of the context's", nil)
	add(&c.Config.User, "user", "USER", "kubeconfig user for the %s, instead of the context's", nil)
	add(&c.Config.As, "as", "USER", "user to impersonate in the %s", nil)
	ui.AddFlag(flags, &c.Config.AsGroups, c.prefix+"as-group", "GROUP", "group to impersonate in the "+which+" cluster; may be repeated",
		func(text string) ([]string, error) { return append(c.Config.AsGroups, text), nil })
	add(&c.Config.Namespace, "namespace"+shorthand, "NAMESPACE", "namespace of liqonet in the %s"+inherited, ui.Namespace)
	if c.prefix == "" {
		add(&c.Config.RequestTimeout, "request-timeout", "DURATION", "time limit of one request to an API server; 0 is none", ui.RequestTimeout)
	}
	c.complete(cmd, "context", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.Contexts)) })
	c.complete(cmd, "cluster", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.Clusters)) })
	c.complete(cmd, "user", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.AuthInfos)) })
}

// complete offers names of the kubeconfig as the argument of a flag.
func (c *ClusterFlags) complete(cmd *cobra.Command, flag string, names func(*api.Config) []string) {
	ui.Complete(cmd, c.prefix+flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		kubeconfig, err := c.Config.Loader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(&kubeconfig), cobra.ShellCompDirectiveNoFileComp
	})
}

// Chosen reports whether any of the flags selects a cluster.
func (c *ClusterFlags) Chosen() bool {
	return c.Config.File != "" || c.Config.Context != "" || c.Config.Cluster != "" || c.Config.User != ""
}

// Inherit takes from the local cluster's flags what these leave open.
func (c *ClusterFlags) Inherit(local *ClusterFlags) {
	c.Config.File = cmp.Or(c.Config.File, local.Config.File)
	c.Config.Namespace = cmp.Or(c.Config.Namespace, local.Config.Namespace)
	c.Config.RequestTimeout = local.Config.RequestTimeout
}

// same reports whether both choose the same entries of the same kubeconfig.
func (c *ClusterFlags) same(o *ClusterFlags) bool {
	return c.Config.File == o.Config.File && c.Config.Context == o.Config.Context && c.Config.Cluster == o.Config.Cluster && c.Config.User == o.Config.User
}

// Connect makes the clients of the cluster. It reads the kubeconfig and sends nothing. Errors are usage errors.
func (c *ClusterFlags) Connect(env *Env) (*kube.Cluster, error) {
	c.Config.Adapt = env.timeRequests(c)
	connected, err := kube.Connect(c.Config, env.Build.Version)
	if err != nil {
		return nil, &UsageError{Err: err, Advice: c.kubeconfigHint()}
	}
	connected.Locking = env.locking
	return connected, nil
}

// ConnectAll makes the clients of several contexts of the kubeconfig. Errors are usage errors.
func (c *ClusterFlags) ConnectAll(env *Env, contexts []string) (all []*kube.Cluster, err error) {
	for _, context := range contexts {
		one := *c
		one.Config.Context, one.Config.Shared = context, len(contexts)-1
		cluster, err := one.Connect(env)
		if err != nil {
			return nil, err
		}
		all = append(all, cluster)
	}
	return all, nil
}

// Reach makes the clients of the cluster and finds out whether it answers.
func (c *ClusterFlags) Reach(ctx context.Context, env *Env) (*kube.Cluster, error) {
	connected, err := c.Connect(env)
	if err != nil {
		return nil, err
	}
	return connected, connected.Reach(ctx)
}

// kubeconfigHint is the advice for flags that choose no cluster of the kubeconfig: what it has instead of the first
// name that it does not have.
func (c *ClusterFlags) kubeconfigHint() string {
	kubeconfig, err := c.Config.Loader().RawConfig()
	if err != nil || len(kubeconfig.Contexts) == 0 {
		return "set --" + c.prefix + "kubeconfig"
	}
	flag, known := "context", slices.Sorted(maps.Keys(kubeconfig.Contexts))
	chosen := cmp.Or(c.Config.Context, kubeconfig.CurrentContext)
	if slices.Contains(known, chosen) {
		switch {
		case c.Config.Cluster != "" && kubeconfig.Clusters[c.Config.Cluster] == nil:
			flag, known = "cluster", slices.Sorted(maps.Keys(kubeconfig.Clusters))
		case c.Config.User != "" && kubeconfig.AuthInfos[c.Config.User] == nil:
			flag, known = "user", slices.Sorted(maps.Keys(kubeconfig.AuthInfos))
		}
	}
	return fmt.Sprintf("set --%s%s to one of: %s", c.prefix, flag, strings.Join(known, ", "))
}
