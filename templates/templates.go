// Package templates renders the objects of liqonet: those of an installation (Base), those of a peering's gateways
// (Gateways), and the roles of liqonet's users (Access). The manifests are embedded YAML, decoded strictly into typed
// objects. Values are then set on typed fields, so that no value, whatever its source, can become another field.
//
// Rendering is pure: no I/O, no client. The documents in objects are defined in internal/records.
package templates

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/records"
)

// Ports of the helpers' pods.
const (
	// UDP, WireGuard, in gateway pods: for the tunnel to gateway 1 of the peer; the ports of others follow.
	TunnelPort    = 51840
	WebSocketPort = 51880 // TCP, in gateway pods
	ProbePort     = 6093  // TCP, /readyz and /livez; on nodes at 127.0.0.1 only
)

// KeysPath is the directory in a gateway pod where the peering's Secret is mounted, one file per key.
const KeysPath = "/etc/liqonet/keys"

// ProxyPath is the directory in a client's gateway pod where the Secret of its proxy is mounted, with files username
// and password. It is empty if the Secret does not exist.
const ProxyPath = "/etc/liqonet/proxy"

// EpochPath is the directory in a gateway pod with the pod's epoch.
const EpochPath = "/var/lib/liqonet"

//go:embed base gateway policy access
var manifests embed.FS

// Object is an object of the API with its metadata. It is an alias so that slices of it need no conversion
// between packages.
type Object = interface {
	metav1.Object
	runtime.Object
}

// NodePods returns the label selector of the node helper's pods.
func NodePods() string { return records.LabelComponent + "=" + records.ComponentFabric }

// reader decodes embedded manifests and stores the first error, so that several can be read in a row.
type reader struct{ err error }

// decoded has the manifests that were decoded, by path, of which read returns copies: status renders the gateways of
// each peering.
var decoded sync.Map

// read decodes a manifest. An unknown field is an error. The result is never nil.
func read[T any, P interface {
	*T
	DeepCopy() *T
}](r *reader, path string) *T {
	known, _ := decoded.Load(path)
	if object, ok := known.(P); ok {
		return object.DeepCopy()
	}
	object := new(T)
	data, err := manifests.ReadFile(path)
	if err == nil {
		err = yaml.UnmarshalStrict(data, object)
	}
	switch {
	case err == nil:
		decoded.Store(path, P(object).DeepCopy())
	case r.err == nil:
		r.err = fmt.Errorf("manifest %s: %w", path, err)
	}
	return object
}

// identify sets name, namespace ("" for cluster-wide objects) and liqonet's labels, in addition to those of the
// manifest.
func identify(o Object, namespace, name string, labels map[string]string) {
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetLabels(merged(o.GetLabels(), labels))
}

// validateNamespace returns an error if a text is not a valid name of a namespace.
func validateNamespace(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

// validateImage returns an error if a text cannot be an image reference. Further checks are up to the container
// runtime.
func validateImage(reference string) error {
	if reference == "" || strings.ContainsFunc(reference, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("image %q: want a reference such as registry.example/liqonet:v1", reference)
	}
	return nil
}
