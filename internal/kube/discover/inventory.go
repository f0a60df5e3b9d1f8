package discover

import (
	"context"
	"fmt"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"liqonet.io/liqonet/internal/kube"
)

// podPage is the number of running pods that are checked against a discovered pod CIDR.
const podPage = 500

// inventory has all inputs of the discovery. Objects that do not exist, or that the user may not read, are empty.
type inventory struct {
	nodes        corev1.NodeList
	pods         corev1.PodList // one page of running pods
	components   corev1.PodList // static pods of the control plane and kube-proxy
	daemonSets   appsv1.DaemonSetList
	configMaps   map[types.NamespacedName]*corev1.ConfigMap
	versions     map[string]bool // of the API, such as "apps/v1"
	policies     bool            // the API has kind ValidatingAdmissionPolicy
	kubernetes   corev1.Service  // default/kubernetes
	serviceCIDRs networkingv1.ServiceCIDRList
	calicoPools  unstructured.UnstructuredList
	calicoFelix  unstructured.UnstructuredList
	ciliumPools  unstructured.UnstructuredList
	ciliumNodes  unstructured.UnstructuredList
	// openshiftNetworks is the configuration of OpenShift's network operator.
	openshiftNetworks unstructured.UnstructuredList

	mu     sync.Mutex
	unread []string // notes on sources that could not be read, with the reason
}

// The ConfigMaps with address settings.
var (
	kubeadmConfig       = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}
	kubeProxyConfig     = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}
	ciliumConfig        = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "cilium-config"}
	flannelConfig       = types.NamespacedName{Namespace: "kube-flannel", Name: "kube-flannel-cfg"}
	flannelSystemConfig = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-flannel-cfg"}
)

// source is one input of an inventory.
type source struct {
	what     string
	optional bool // may be missing; without permission to read it, there is a note
	read     func(context.Context) error
}

// readInventory reads all sources in parallel.
func readInventory(ctx context.Context, c *kube.Cluster) (*inventory, error) {
	inv := &inventory{configMaps: make(map[types.NamespacedName]*corev1.ConfigMap), versions: make(map[string]bool)}
	if err := read(ctx, c, inv, sources(c, inv)); err != nil {
		return nil, err
	}
	return inv, read(ctx, c, inv, networkSources(c, inv))
}

func read(ctx context.Context, c *kube.Cluster, inv *inventory, sources []source) error {
	return kube.Each(ctx, sources, func(ctx context.Context, _ int, s source) error {
		switch err := s.read(ctx); {
		case err != nil && s.optional && apierrors.IsForbidden(err):
			inv.mu.Lock()
			defer inv.mu.Unlock()
			inv.unread = append(inv.unread, "not allowed to read "+s.what)
		case err != nil && (!s.optional || !apierrors.IsNotFound(err)):
			return fmt.Errorf("read %s of cluster %q: %w", s.what, c.Context, err)
		}
		return nil
	})
}

// sources returns the sources that every cluster may have.
func sources(c *kube.Cluster, inv *inventory) []source {
	core := c.Kube.CoreV1()
	every := metav1.ListOptions{}
	running := metav1.ListOptions{FieldSelector: "status.phase=Running", Limit: podPage}
	static := metav1.ListOptions{LabelSelector: "component in (kube-apiserver, kube-controller-manager, kube-proxy)"}
	all := []source{
		{"nodes", false, readList(&inv.nodes, core.Nodes().List, every)},
		{"pods", false, readList(&inv.pods, core.Pods(metav1.NamespaceAll).List, running)},
		{"the control plane's pods", true, readList(&inv.components, core.Pods(metav1.NamespaceSystem).List, static)},
		{"daemonsets", true, readList(&inv.daemonSets, c.Kube.AppsV1().DaemonSets(metav1.NamespaceAll).List, every)},
		{"service default/kubernetes", true, readObject(&inv.kubernetes, core.Services(metav1.NamespaceDefault).Get, "kubernetes")},
		{"ServiceCIDR objects", true, readList(&inv.serviceCIDRs, c.Kube.NetworkingV1().ServiceCIDRs().List, every)},
		{"API groups", false, func(ctx context.Context) error { return readVersions(ctx, c, inv) }},
		{"admission API", true, func(ctx context.Context) error { return readPolicies(ctx, c, inv) }},
	}
	for _, place := range []types.NamespacedName{kubeadmConfig, kubeProxyConfig, ciliumConfig, flannelConfig, flannelSystemConfig} {
		inv.configMaps[place] = &corev1.ConfigMap{}
		read := readObject(inv.configMaps[place], core.ConfigMaps(place.Namespace).Get, place.Name)
		all = append(all, source{"ConfigMap " + place.String(), true, read})
	}
	return all
}

// readList returns a function that reads a list.
func readList[L any](into *L, list func(context.Context, metav1.ListOptions) (*L, error), o metav1.ListOptions) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := list(ctx, o)
		if err == nil {
			*into = *all
		}
		return err
	}
}

// readObject returns a function that reads an object.
func readObject[T any](into *T, get func(context.Context, string, metav1.GetOptions) (*T, error), name string) func(context.Context) error {
	return func(ctx context.Context) error {
		object, err := get(ctx, name, metav1.GetOptions{})
		if err == nil {
			*into = *object
		}
		return err
	}
}

func readVersions(ctx context.Context, c *kube.Cluster, inv *inventory) error {
	client := discovery.ToServerGroupsInterfaceWithContext(c.Kube.Discovery())
	groups, err := client.ServerGroupsWithContext(ctx)
	if err != nil {
		return err
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			inv.versions[version.GroupVersion] = true
		}
	}
	return nil
}

// readPolicies checks whether the API has the stable version of admission policies (Kubernetes 1.30). Every user may
// list the resources of an API.
func readPolicies(ctx context.Context, c *kube.Cluster, inv *inventory) error {
	client := discovery.ToServerResourcesInterfaceWithContext(c.Kube.Discovery())
	list, err := client.ServerResourcesForGroupVersionWithContext(ctx, admissionv1.SchemeGroupVersion.String())
	if err != nil {
		return err
	}
	inv.policies = slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Name == "validatingadmissionpolicies"
	})
	return nil
}

// networkSources returns the custom resources of CNIs, in the first version of each that the API serves.
func networkSources(c *kube.Cluster, inv *inventory) (all []source) {
	for _, kind := range []struct {
		into     *unstructured.UnstructuredList
		plural   string
		versions []string
	}{
		{&inv.calicoPools, "ippools", []string{"crd.projectcalico.org/v1", "projectcalico.org/v3"}},
		{&inv.calicoFelix, "felixconfigurations", []string{"crd.projectcalico.org/v1", "projectcalico.org/v3"}},
		{&inv.ciliumNodes, "ciliumnodes", []string{"cilium.io/v2"}},
		{&inv.ciliumPools, "ciliumpodippools", []string{"cilium.io/v2alpha1"}},
		{&inv.openshiftNetworks, "networks", []string{"operator.openshift.io/v1"}},
	} {
		i := slices.IndexFunc(kind.versions, func(version string) bool { return inv.versions[version] })
		if i < 0 {
			continue
		}
		version, _ := schema.ParseGroupVersion(kind.versions[i]) // a constant
		list := c.Dynamic.Resource(version.WithResource(kind.plural)).List
		all = append(all, source{kind.plural + "." + version.Group, true, readList(kind.into, list, metav1.ListOptions{})})
	}
	return all
}
