package cluster

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Kubeconfig says which cluster of which kubeconfig is meant, as kubectl's flags of these names do. The zero value is
// the current context of the default kubeconfig.
type Kubeconfig struct {
	File           string // "": $KUBECONFIG, else ~/.kube/config
	Context        string
	Cluster        string // instead of the context's
	User           string // instead of the context's
	Namespace      string // of liqonet; the context's, where its user works, does not count
	RequestTimeout string // of each request, such as "10s"; "" and "0" are none
	// Adapt, unless nil, changes the configuration of the client.
	Adapt func(*rest.Config)
}

// Loader reads the kubeconfig when it is asked.
func (k Kubeconfig) Loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = k.File
	// As kubectl does: without a kubeconfig, the cluster in which this runs, else ClusterDefaults.
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	overrides := &clientcmd.ConfigOverrides{ClusterDefaults: clientcmd.ClusterDefaults, CurrentContext: k.Context, Timeout: k.RequestTimeout}
	overrides.Context.Cluster, overrides.Context.AuthInfo, overrides.Context.Namespace = k.Cluster, k.User, k.Namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// config is the configuration of a client.
func (k Kubeconfig) config() (*rest.Config, error) {
	config, err := k.Loader().ClientConfig()
	if err == nil && k.Adapt != nil {
		k.Adapt(config)
	}
	return config, err
}
