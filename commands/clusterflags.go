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
	return &clusterFlags{prefix: remotePrefix, config: genericclioptions.ConfigFlags{
		KubeConfig: new(string), Context: new(string), ClusterName: new(string), AuthInfoName: new(string),
		Namespace: new(string),
	}}
}

// usages are the descriptions of the flags, which name the cluster that they speak of.
var (
	localUsages = map[string]string{
		"kubeconfig":      "kubeconfig `FILE` of the local cluster (default: as kubectl's)",
		"context":         "kube `CONTEXT` of the local cluster",
		"cluster":         "kubeconfig `CLUSTER` to use for the local cluster, in place of the context's",
		"user":            "kubeconfig `USER` to use for the local cluster, in place of the context's",
		"namespace":       "`NAMESPACE` of liqonet in the local cluster",
		"request-timeout": "`DURATION` after which a single request to an API server is given up; 0, the default, is never",
	}
	remoteUsages = map[string]string{
		"kubeconfig": "kubeconfig `FILE` of the remote cluster (default: the local cluster's)",
		"context":    "kube `CONTEXT` of the remote cluster",
		"cluster":    "kubeconfig `CLUSTER` to use for the remote cluster, in place of the context's",
		"user":       "kubeconfig `USER` to use for the remote cluster, in place of the context's",
		"namespace":  "`NAMESPACE` of liqonet in the remote cluster (default: the local cluster's)",
	}
)

// register adds the flags to a command; persistent ones hold for its subcommands too.
func (c *clusterFlags) register(cmd *cobra.Command, flags *pflag.FlagSet) {
	usages := localUsages
	if c.prefix != "" {
		usages = remoteUsages
	}
	kubectl := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.config.AddFlags(kubectl)
	checkText(kubectl, "namespace", namespace)
	if c.config.Timeout != nil {
		checkText(kubectl, "request-timeout", requestTimeout)
	}
	kubectl.VisitAll(func(f *pflag.Flag) {
		f.Usage = usages[f.Name]
		if c.prefix != "" {
			f.Name, f.Shorthand = c.prefix+f.Name, ""
		}
		flags.AddFlag(f)
	})
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
	connected, err := cluster.Connect(&c.config, env.Build.Version)
	if err != nil {
		return nil, &UsageError{Err: err, hint: c.kubeconfigHint()}
	}
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
		return "name a kubeconfig with --" + c.prefix + "kubeconfig"
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
	return fmt.Sprintf("choose with --%s%s: the kubeconfig has %s", c.prefix, flag, strings.Join(known, ", "))
}
