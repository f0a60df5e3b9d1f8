package kube

import (
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/records"
)

// Kubeconfig selects a cluster of a kubeconfig, like kubectl's flags of these names. The zero value is the current
// context of the default kubeconfig.
type Kubeconfig struct {
	File           string // "": $KUBECONFIG, else ~/.kube/config
	Context        string
	Cluster        string // overrides the context's
	User           string // overrides the context's
	Namespace      string // of liqonet; the context's namespace is for the user's work and is ignored
	RequestTimeout string // of each request, such as "10s"; "" and "0": none
	// As and AsGroups are impersonated: the API server checks their rights instead of the user's.
	As       string
	AsGroups []string
	Shared   int // see Options
	// Adapt, if not nil, changes the configuration of the client.
	Adapt func(*rest.Config)
}

// Loader returns a client configuration that reads the kubeconfig on use.
func (k Kubeconfig) Loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	// As in kubectl: without a kubeconfig, use the cluster in which this process runs, else ClusterDefaults.
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	overrides := &clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults, CurrentContext: k.Context, Timeout: k.RequestTimeout}
	overrides.Context.Cluster, overrides.Context.AuthInfo, overrides.Context.Namespace = k.Cluster, k.User, k.Namespace
	overrides.AuthInfo.Impersonate, overrides.AuthInfo.ImpersonateGroups = k.As, k.AsGroups
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// Flags returns the flags with which another command of liqoctl works on the same clusters, quoted for a shell. remote
// may be nil.
func Flags(local, remote *Cluster) string {
	flags := local.flags("", &Cluster{Namespace: records.DefaultNamespace})
	if remote != nil {
		flags = append(flags, remote.flags("remote-", local)...) // what is not given is as for the local cluster
	}
	return strings.Join(flags, " ")
}

// flags returns the flags that select the cluster, without those that have the value of the default cluster.
func (c *Cluster) flags(prefix string, byDefault *Cluster) (flags []string) {
	add := func(name, value, byDefault string) {
		if value != byDefault && value != "" {
			flags = append(flags, "--"+prefix+name+" "+ShellWord(value))
		}
	}
	add("kubeconfig", c.selected.File, byDefault.selected.File)
	add("context", c.Context, "")
	add("cluster", c.selected.Cluster, "")
	add("user", c.selected.User, "")
	add("as", c.selected.As, "")
	for _, group := range c.selected.AsGroups {
		add("as-group", group, "")
	}
	add("namespace", c.Namespace, byDefault.Namespace)
	return flags
}
