package pki

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// Access is how one user reaches one cluster.
type Access struct {
	Context   string // names the cluster, its user and the context
	Server    string // URL
	Authority []byte // certificate, PEM
	User      Pair
}

// The part of the kubeconfig format that a lab needs.
type (
	kubeconfig struct {
		APIVersion     string         `json:"apiVersion"`
		Kind           string         `json:"kind"`
		CurrentContext string         `json:"current-context"`
		Clusters       []namedCluster `json:"clusters"`
		Users          []namedUser    `json:"users"`
		Contexts       []namedContext `json:"contexts"`
	}
	namedCluster struct {
		Name    string        `json:"name"`
		Cluster clusterAccess `json:"cluster"`
	}
	clusterAccess struct {
		Server    string `json:"server"`
		Authority []byte `json:"certificate-authority-data"`
	}
	namedUser struct {
		Name string     `json:"name"`
		User userAccess `json:"user"`
	}
	userAccess struct {
		Certificate []byte `json:"client-certificate-data"`
		Key         []byte `json:"client-key-data"`
	}
	namedContext struct {
		Name    string        `json:"name"`
		Context contextAccess `json:"context"`
	}
	contextAccess struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	}
)

// Kubeconfig returns a kubeconfig with one context for each access; the first is the current one.
func Kubeconfig(accesses ...Access) ([]byte, error) {
	k := kubeconfig{APIVersion: "v1", Kind: "Config"}
	for i, a := range accesses {
		if i == 0 {
			k.CurrentContext = a.Context
		}
		user := a.Context + "-user"
		k.Clusters = append(k.Clusters, namedCluster{a.Context, clusterAccess{a.Server, a.Authority}})
		k.Users = append(k.Users, namedUser{user, userAccess{a.User.Certificate, a.User.Key}})
		k.Contexts = append(k.Contexts, namedContext{a.Context, contextAccess{a.Context, user}})
	}
	text, err := yaml.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return text, nil
}
