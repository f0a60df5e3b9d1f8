package commands

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

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
)

// remotePrefix begins the flags that speak of the other cluster.
const remotePrefix = "remote-"

// clusterFlags are the flags that choose a cluster: kubectl's own, or their twins for the remote cluster.
type clusterFlags struct {
	prefix string // of the flags' names
	config cluster.Kubeconfig
}

// newClusterFlags returns the flags of the local cluster.
func newClusterFlags() *clusterFlags {
	return &clusterFlags{config: cluster.Kubeconfig{Namespace: records.DefaultNamespace, RequestTimeout: "0"}}
}

// newRemoteFlags returns the flags of the remote cluster.
func newRemoteFlags() *clusterFlags {
	return &clusterFlags{prefix: remotePrefix} // the rest as the local cluster's: see inherit
}

// register adds the flags to a command; persistent ones hold for its subcommands too.
func (c *clusterFlags) register(cmd *cobra.Command, flags *pflag.FlagSet) {
	which, shorthand, inherited := "local", ",n", ""
	if c.prefix != "" {
		which, shorthand, inherited = "remote", "", " (default: the local cluster's)"
	}
	add := func(to *string, name, kind, usage string, check func(string) error) {
		textFlag(flags, to, c.prefix+name, kind, strings.ReplaceAll(usage, "%s", which+" cluster"), check)
	}
	add(&c.config.File, "kubeconfig", "FILE", "kubeconfig of the %s"+inherited, nil)
	add(&c.config.Context, "context", "CONTEXT", "kube context of the %s", nil)
	add(&c.config.Cluster, "cluster", "CLUSTER", "kubeconfig entry of the %s, instead of the context's", nil)
	add(&c.config.User, "user", "USER", "kubeconfig user for the %s, instead of the context's", nil)
	add(&c.config.Namespace, "namespace"+shorthand, "NAMESPACE", "namespace of liqonet in the %s"+inherited, namespace)
	if c.prefix == "" {
		add(&c.config.RequestTimeout, "request-timeout", "DURATION", "time limit of one request to an API server; 0 is none", requestTimeout)
	}
	c.complete(cmd, "context", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.Contexts)) })
	c.complete(cmd, "cluster", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.Clusters)) })
	c.complete(cmd, "user", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.AuthInfos)) })
}

// complete offers names of the kubeconfig as the argument of a flag.
func (c *clusterFlags) complete(cmd *cobra.Command, flag string, names func(*api.Config) []string) {
	complete(cmd, c.prefix+flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		kubeconfig, err := c.config.Loader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(&kubeconfig), cobra.ShellCompDirectiveNoFileComp
	})
}

// chosen reports whether any of the flags says which cluster is meant.
func (c *clusterFlags) chosen() bool {
	return c.config.File != "" || c.config.Context != "" || c.config.Cluster != "" || c.config.User != ""
}

// inherit takes from the local cluster's flags what these leave open.
func (c *clusterFlags) inherit(local *clusterFlags) {
	c.config.File = cmp.Or(c.config.File, local.config.File)
	c.config.Namespace = cmp.Or(c.config.Namespace, local.config.Namespace)
	c.config.RequestTimeout = local.config.RequestTimeout
}

// same reports whether both choose the same entries of the same kubeconfig.
func (c *clusterFlags) same(o *clusterFlags) bool {
	return c.config.File == o.config.File && c.config.Context == o.config.Context && c.config.Cluster == o.config.Cluster && c.config.User == o.config.User
}

// connect makes the clients of the cluster. It reads the kubeconfig and sends nothing. Errors are usage errors.
func (c *clusterFlags) connect(env *Env) (*cluster.Cluster, error) {
	c.config.Adapt = env.logRequests(c)
	connected, err := cluster.Connect(c.config, env.Build.Version)
	if err != nil {
		return nil, &UsageError{Err: err, hint: c.kubeconfigHint()}
	}
	connected.Locking = env.locking
	return connected, nil
}

// reach makes the clients of the cluster and finds out whether it answers.
func (c *clusterFlags) reach(ctx context.Context, env *Env) (*cluster.Cluster, error) {
	connected, err := c.connect(env)
	if err != nil {
		return nil, err
	}
	return connected, connected.Reach(ctx)
}

// kubeconfigHint is the advice for flags that choose no cluster of the kubeconfig: what it has instead of the first
// name that it does not have.
func (c *clusterFlags) kubeconfigHint() string {
	kubeconfig, err := c.config.Loader().RawConfig()
	if err != nil || len(kubeconfig.Contexts) == 0 {
		return "set --" + c.prefix + "kubeconfig"
	}
	flag, known := "context", slices.Sorted(maps.Keys(kubeconfig.Contexts))
	chosen := cmp.Or(c.config.Context, kubeconfig.CurrentContext)
	if slices.Contains(known, chosen) {
		switch {
		case c.config.Cluster != "" && kubeconfig.Clusters[c.config.Cluster] == nil:
			flag, known = "cluster", slices.Sorted(maps.Keys(kubeconfig.Clusters))
		case c.config.User != "" && kubeconfig.AuthInfos[c.config.User] == nil:
			flag, known = "user", slices.Sorted(maps.Keys(kubeconfig.AuthInfos))
		}
	}
	return fmt.Sprintf("set --%s%s to one of: %s", c.prefix, flag, strings.Join(known, ", "))
}
