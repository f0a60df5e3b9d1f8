package kube

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
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
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// config returns the configuration of a client.
func (k Kubeconfig) config() (*rest.Config, error) {
	config, err := k.Loader().ClientConfig()
	if err == nil && k.Adapt != nil {
		k.Adapt(config)
	}
	return config, err
}
