// Package cluster makes the configuration of a Kubernetes cluster's programs: certificates, files, command lines. It
// starts none of them.
package cluster

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"liqonet.io/liqonet/lab/pki"
	"liqonet.io/liqonet/lab/spec"
)

var localhost = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Addresses at which programs listen for clients in the same network namespace.
var (
	APIServer       = netip.AddrPortFrom(localhost, spec.APIPort)
	KubeProxyHealth = netip.AddrPortFrom(localhost, 10256)
)

// Identity is a cluster with the authority that its members trust.
type Identity struct {
	Cluster   spec.Cluster
	Admin     pki.Pair
	authority *pki.Authority
}

// NewIdentity makes the authority of a cluster and the certificate of its administrator.
func NewIdentity(c spec.Cluster) (*Identity, error) {
	authority, err := pki.NewAuthority("lab-" + c.Name)
	if err != nil {
		return nil, err
	}
	admin, err := authority.Issue(pki.Subject{User: "kubernetes-admin", Group: "system:masters"})
	if err != nil {
		return nil, err
	}
	return &Identity{Cluster: c, Admin: admin, authority: authority}, nil
}

// Authority is the certificate, PEM, that clients of the cluster trust.
func (id *Identity) Authority() []byte { return id.authority.Certificate() }

// kubeconfig lets a user reach the API server from inside the lab.
func (id *Identity) kubeconfig(user pki.Pair) ([]byte, error) {
	return pki.Kubeconfig(pki.Access{
		Context:   id.Cluster.Name,
		Server:    fmt.Sprintf("https://%s", netip.AddrPortFrom(id.Cluster.ControlPlaneAddress(), spec.APIPort)),
		Authority: id.Authority(),
		User:      user,
	})
}

// files are contents by name.
type files map[string][]byte

// addPair adds NAME.crt and NAME.key.
func (f files) addPair(name string, p pki.Pair) {
	f[name+".crt"], f[name+".key"] = p.Certificate, p.Key
}

// write writes the files below dir, readable only by root.
func (f files) write(dir string) error {
	for name, content := range f {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}
