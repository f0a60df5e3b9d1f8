// Package fakecluster makes clusters for tests. Their API server is client-go's fake one. The package adds to that fake
// what package kube relies on: UIDs and resource versions with their preconditions, managed fields and server-side
// apply, dry runs that change nothing, and answers to access reviews. It does not simulate defaulting and admission.
package fakecluster

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// Config has the objects of an API server and the rights of its user.
type Config struct {
	Context string // "" is "test"
	// Objects are those of the API server. Unstructured ones are custom resources: their groups are served.
	Objects []runtime.Object
	// Denied are permissions that the user lacks; nil allows everything.
	Denied []kube.Permission
}

// NewAPIServer returns a cluster with liqonet's default namespace, and its fake client, for reactors of the test.
func NewAPIServer(config Config) (*kube.Cluster, *fake.Clientset) {
	var builtin, custom []runtime.Object
	for _, object := range config.Objects {
		if _, ok := object.(*unstructured.Unstructured); ok {
			custom = append(custom, object)
		} else {
			builtin = append(builtin, object)
		}
	}
	api := fake.NewSimpleClientset(builtin...)
	for _, object := range custom {
		version := object.GetObjectKind().GroupVersionKind().GroupVersion().String()
		api.Resources = append(api.Resources, &metav1.APIResourceList{GroupVersion: version})
	}
	api.PrependReactor("*", "*", (&writes{store: api.Tracker()}).react)
	api.PrependReactor("create", "selfsubjectaccessreviews", Review(func(p kube.Permission) bool {
		return !slices.Contains(config.Denied, p)
	}))
	name := config.Context
	if name == "" {
		name = "test"
	}
	return &kube.Cluster{
		Context: name, Namespace: records.DefaultNamespace, Kube: api,
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), customKinds(), custom...),
	}, api
}

// customKinds are the custom resources that discovery lists.
func customKinds() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		{Group: "crd.projectcalico.org", Version: "v1", Resource: "ippools"}:             "IPPoolList",
		{Group: "crd.projectcalico.org", Version: "v1", Resource: "felixconfigurations"}: "FelixConfigurationList",
		{Group: "projectcalico.org", Version: "v3", Resource: "ippools"}:                 "IPPoolList",
		{Group: "projectcalico.org", Version: "v3", Resource: "felixconfigurations"}:     "FelixConfigurationList",
		{Group: "operator.openshift.io", Version: "v1", Resource: "networks"}:            "NetworkList",
		{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}:                     "CiliumNodeList",
		{Group: "cilium.io", Version: "v2alpha1", Resource: "ciliumpodippools"}:          "CiliumPodIPPoolList",
	}
}

// Review returns a reactor for requests to create access reviews, which answers what the user may do.
func Review(allowed func(kube.Permission) bool) clienttesting.ReactionFunc {
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateActionImpl)
		if !ok {
			return false, nil, nil
		}
		answer, ok := create.Object.DeepCopyObject().(*authorizationv1.SelfSubjectAccessReview)
		if !ok {
			return false, nil, nil
		}
		answer.Status.Allowed = allowed(kube.Permission(*answer.Spec.ResourceAttributes))
		return true, answer, nil
	}
}
