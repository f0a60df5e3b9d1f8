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
	"k8s.io/cli-runtime/pkg/genericclioptions"
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
	config genericclioptions.ConfigFlags
}

// newClusterFlags returns the flags of the local cluster.
func newClusterFlags() *clusterFlags {
	namespace, timeout := records.DefaultNamespace, "0"
	return &clusterFlags{config: genericclioptions.ConfigFlags{
		KubeConfig: new(string), Context: new(string), ClusterName: new(string), AuthInfoName: new(string),
		Namespace: &namespace, Timeout: &timeout,
	}}
}

// newRemoteFlags returns the flags of the remote cluster.
func newRemoteFlags() *clusterFlags {
	c := newClusterFlags()
	c.prefix, c.config.Namespace, c.config.Timeout = remotePrefix, new(string), nil // as the local cluster's: see inherit
	return c
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
	add(c.config.KubeConfig, "kubeconfig", "FILE", "kubeconfig of the %s"+inherited, nil)
	add(c.config.Context, "context", "CONTEXT", "kube context of the %s", nil)
	add(c.config.ClusterName, "cluster", "CLUSTER", "kubeconfig entry of the %s, instead of the context's", nil)
	add(c.config.AuthInfoName, "user", "USER", "kubeconfig user for the %s, instead of the context's", nil)
	add(c.config.Namespace, "namespace"+shorthand, "NAMESPACE", "namespace of liqonet in the %s"+inherited, namespace)
	if c.config.Timeout != nil {
		add(c.config.Timeout, "request-timeout", "DURATION", "time limit of one request to an API server; 0 is none", requestTimeout)
	}
	c.complete(cmd, "context", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.Contexts)) })
	c.complete(cmd, "cluster", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.Clusters)) })
	c.complete(cmd, "user", func(k *api.Config) []string { return slices.Sorted(maps.Keys(k.AuthInfos)) })
}

// complete offers names of the kubeconfig as the argument of a flag.
func (c *clusterFlags) complete(cmd *cobra.Command, flag string, names func(*api.Config) []string) {
	complete(cmd, c.prefix+flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		kubeconfig, err := c.config.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return names(&kubeconfig), cobra.ShellCompDirectiveNoFileComp
	})
}

// chosen reports whether any of the flags says which cluster is meant.
func (c *clusterFlags) chosen() bool {
	return *c.config.KubeConfig != "" || *c.config.Context != "" || *c.config.ClusterName != "" || *c.config.AuthInfoName != ""
}

// inherit takes from the local cluster's flags what these leave open.
func (c *clusterFlags) inherit(local *clusterFlags) {
	if *c.config.KubeConfig == "" {
		*c.config.KubeConfig = *local.config.KubeConfig
	}
	if *c.config.Namespace == "" {
		*c.config.Namespace = *local.config.Namespace
	}
	c.config.Timeout = local.config.Timeout
}

// same reports whether both choose the same entries of the same kubeconfig.
func (c *clusterFlags) same(o *clusterFlags) bool {
	return *c.config.KubeConfig == *o.config.KubeConfig && *c.config.Context == *o.config.Context &&
		*c.config.ClusterName == *o.config.ClusterName && *c.config.AuthInfoName == *o.config.AuthInfoName
}

// connect makes the clients of the cluster. It reads the kubeconfig and sends nothing. Errors are usage errors.
func (c *clusterFlags) connect(env *Env) (*cluster.Cluster, error) {
	c.config.WrapConfigFn = env.logRequests(c)
	connected, err := cluster.Connect(&c.config, env.Build.Version)
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

// kubeconfigHint is the advice for flags that choose no cluster of the kubeconfig: what it has instead of the first name
// that it does not have.
func (c *clusterFlags) kubeconfigHint() string {
	kubeconfig, err := c.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil || len(kubeconfig.Contexts) == 0 {
		return "set --" + c.prefix + "kubeconfig"
	}
	flag, known := "context", slices.Sorted(maps.Keys(kubeconfig.Contexts))
	chosen := cmp.Or(*c.config.Context, kubeconfig.CurrentContext)
	if slices.Contains(known, chosen) {
		switch {
		case *c.config.ClusterName != "" && kubeconfig.Clusters[*c.config.ClusterName] == nil:
			flag, known = "cluster", slices.Sorted(maps.Keys(kubeconfig.Clusters))
		case *c.config.AuthInfoName != "" && kubeconfig.AuthInfos[*c.config.AuthInfoName] == nil:
			flag, known = "user", slices.Sorted(maps.Keys(kubeconfig.AuthInfos))
		}
	}
	return fmt.Sprintf("set --%s%s to one of: %s", c.prefix, flag, strings.Join(known, ", "))
}
