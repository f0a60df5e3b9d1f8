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

// Kubeconfig returns a kubeconfig with one context for each access, of which there is one at least; the first is the
// current one.
func Kubeconfig(accesses ...Access) ([]byte, error) {
	type fields = map[string]any
	var clusters, users, contexts []fields
	for _, a := range accesses {
		user := a.Context + "-user"
		clusters = append(clusters, fields{
			"name": a.Context, "cluster": fields{"server": a.Server, "certificate-authority-data": a.Authority},
		})
		users = append(users, fields{
			"name": user, "user": fields{"client-certificate-data": a.User.Certificate, "client-key-data": a.User.Key},
		})
		contexts = append(contexts, fields{"name": a.Context, "context": fields{"cluster": a.Context, "user": user}})
	}
	text, err := yaml.Marshal(fields{
		"apiVersion": "v1", "kind": "Config", "current-context": accesses[0].Context,
		"clusters": clusters, "users": users, "contexts": contexts,
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return text, nil
}
