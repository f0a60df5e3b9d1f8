package discover_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/golden"
	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

// fixture reads the objects of a cluster in testdata/clusters. Kinds that the scheme does not contain are read as
// custom resources.
func fixture(t *testing.T, name string) []runtime.Object {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "clusters", name+".yaml"))
	require.NoError(t, err)
	var objects []runtime.Object
	for _, document := range bytes.Split(data, []byte("---\n")) {
		if bytes.HasPrefix(document, []byte("#")) {
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			custom := &unstructured.Unstructured{}
			object, err = custom, yaml.Unmarshal(document, &custom.Object)
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		objects = append(objects, object)
	}
	return objects
}

// summary converts a Discovery to text for golden files.
func summary(d discover.Discovery) string {
	var b strings.Builder
	for _, r := range []struct {
		what   string
		ranges discover.Ranges
	}{{"pods", d.PodCIDRs}, {"services", d.ServiceCIDRs}, {"nodes", d.NodeNetworks}} {
		fmt.Fprintf(&b, "%s %v (%s)\n", r.what, r.ranges.Prefixes, r.ranges.Source)
	}
	for _, node := range d.Nodes {
		fmt.Fprintf(&b, "node %s ready=%v %v", node.Name, node.Ready, node.Internal)
		if len(node.External) > 0 {
			fmt.Fprintf(&b, " external %v", node.External)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "cni %q\n", d.CNI)
	for _, note := range d.Notes {
		fmt.Fprintf(&b, "note %s\n", note)
	}
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "warning %s: %s, breaks=%v\n", warning.What, warning.Hint, warning.Breaks)
	}
	return b.String()
}

// TestDiscover: every cluster in testdata/clusters has a golden file with the discovery or the error.
func TestDiscover(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "clusters", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d clusters, %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: fixture(t, name)})
			d, err := discover.Read(t.Context(), c, discover.Overrides{})
			got := summary(d)
			var hinted interface{ Hint() string }
			if errors.As(err, &hinted) {
				got = fmt.Sprintf("error: %s\nhint: %s\n", err, hinted.Hint())
			} else if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, strings.TrimPrefix(strings.TrimSuffix(path, ".yaml"), "testdata/")+".golden", got)
		})
	}
}

func TestDiscoverSuggestsTheFlag(t *testing.T) {
	without := func(name string, leaveOut func(runtime.Object) bool) []runtime.Object {
		var rest []runtime.Object
		for _, object := range fixture(t, name) {
			if !leaveOut(object) {
				rest = append(rest, object)
			}
		}
		return rest
	}
	kind := func(name string) func(runtime.Object) bool {
		return func(o runtime.Object) bool { return o.GetObjectKind().GroupVersionKind().Kind == name }
	}
	for name, c := range map[string]struct {
		objects []runtime.Object
		prefix  string
		want    string
		flag    string
	}{
		"pods with addresses of the VPC": {
			objects: fixture(t, "eks"), prefix: "remote-", flag: "--remote-pod-cidr",
			want: `discover pod CIDR of cluster "test": no CNI resource, component or node has it`,
		},
		"no service CIDR": {
			objects: without("lab", kind("ServiceCIDR")), flag: "--service-cidr",
			want: `discover service CIDR of cluster "test": no ServiceCIDR object or component has it`,
		},
		"no nodes": {
			objects: without("static-pods", kind("Node")), flag: "--node-network",
			want: `discover node network of cluster "test": no node has an internal IPv4 address`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cl, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: c.objects})
			_, err := discover.Read(t.Context(), cl, discover.Overrides{FlagPrefix: c.prefix})
			var missing *discover.MissingError
			if !errors.As(err, &missing) {
				t.Fatalf("error %v", err)
			}
			assert.Equal(t, "error and hint", []string{c.want, "set it with " + c.flag}, []string{err.Error(), missing.Hint()})
		})
	}
}

// TestOverrides: values set by the user apply even if they contradict the cluster; then there is a note.
func TestOverrides(t *testing.T) {
	c, _ := fakecluster.NewAPIServer(fakecluster.Config{Objects: fixture(t, "stray-pod")})
	d, err := discover.Read(t.Context(), c, discover.Overrides{
		PodCIDRs: parsed.Prefixes("10.244.0.0/17", "10.244.128.0/17"), ServiceCIDRs: parsed.Prefixes("10.97.0.0/16"), NodeNetworks: parsed.Prefixes("10.1.0.0/16"),
	})
	require.NoError(t, err)
	want := strings.TrimPrefix(`
pods [10.244.0.0/16] (--pod-cidr)
services [10.97.0.0/16] (--service-cidr)
nodes [10.1.0.0/16] (--node-network)
node n1 ready=true [10.1.0.11]
cni ""
note Service default/kubernetes has address 10.96.0.1, outside [10.97.0.0/16]
note pod kube-system/coredns-a has address 10.88.0.3, outside [10.244.0.0/16]: it will not be reached
`, "\n")
	assert.Equal(t, "summary", want, summary(d))
}

// refuse makes the fake API server return an error for lists of a resource.
func refuse(api *fake.Clientset, resource string, err error) {
	api.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// TestWithoutServiceCIDRAPI: Kubernetes before 1.33 has no ServiceCIDR objects in the stable version.
func TestWithoutServiceCIDRAPI(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: fixture(t, "kubeadm-flannel")})
	refuse(api, "servicecidrs", apierrors.NewNotFound(schema.GroupResource{Resource: "servicecidrs"}, ""))
	if d, err := discover.Read(t.Context(), c, discover.Overrides{}); err != nil || d.ServiceCIDRs.Source != "kubeadm ConfigMap" {
		t.Errorf("services %v, %v", d.ServiceCIDRs, err)
	}
}

// TestDiscoverWithFewRights: without permission to read an optional source there is a note. Without permission to list
// nodes, Discover fails.
func TestDiscoverWithFewRights(t *testing.T) {
	forbidden := func(resource string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	}
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Objects: fixture(t, "lab")})
	refuse(api, "daemonsets", forbidden("daemonsets"))
	d, err := discover.Read(t.Context(), c, discover.Overrides{})
	if err != nil || len(d.Notes) != 1 || d.Notes[0] != "not allowed to read daemonsets" {
		t.Errorf("notes %q, %v", d.Notes, err)
	}
	refuse(api, "nodes", forbidden("nodes"))
	if _, err := discover.Read(t.Context(), c, discover.Overrides{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `read nodes of cluster "test"`) {
		t.Errorf("error %v", err)
	}
}
