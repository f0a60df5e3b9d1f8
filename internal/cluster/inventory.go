package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

// podPage is how many running pods are looked at to see whether a pod CIDR holds what it promises.
const podPage = 500

// inventory is everything that discovery draws its conclusions from. What a cluster does not have, or the
// user may not read, is empty.
type inventory struct {
	nodes          corev1.NodeList
	pods           corev1.PodList // a page of the running ones
	components     corev1.PodList // the control plane's and kube-proxy, where they run as static pods
	daemonSets     appsv1.DaemonSetList
	configMaps     map[types.NamespacedName]*corev1.ConfigMap
	versions       map[string]bool  // of the API, such as "apps/v1"
	policies       bool             // the API has ValidatingAdmissionPolicies
	liqo           corev1.Namespace // "liqo"
	kubernetes     corev1.Service   // default/kubernetes
	serviceCIDRAPI bool
	serviceCIDRs   networkingv1.ServiceCIDRList
	calicoPools    unstructured.UnstructuredList
	calicoFelix    unstructured.UnstructuredList
	ciliumPools    unstructured.UnstructuredList
	ciliumNodes    unstructured.UnstructuredList
	// openshiftNetworks is the configuration of OpenShift's network operator.
	openshiftNetworks unstructured.UnstructuredList

	mu     sync.Mutex
	unread []string // notes: what could not be read, and why
}

// The ConfigMaps that tell of addresses.
var (
	kubeadmConfig       = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}
	kubeProxyConfig     = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}
	ciliumConfig        = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "cilium-config"}
	flannelConfig       = types.NamespacedName{Namespace: "kube-flannel", Name: "kube-flannel-cfg"}
	flannelSystemConfig = types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "kube-flannel-cfg"}
)

// source is something that an inventory reads.
type source struct {
	what     string
	optional bool // it may be missing; where the user may not read it, there is a note
	read     func(context.Context) error
}

// takeInventory reads everything in parallel.
func takeInventory(ctx context.Context, c *Cluster) (*inventory, error) {
	inv := &inventory{configMaps: make(map[types.NamespacedName]*corev1.ConfigMap), versions: make(map[string]bool)}
	if err := read(ctx, c, inv, sources(c, inv)); err != nil {
		return nil, err
	}
	return inv, read(ctx, c, inv, networkSources(c, inv))
}

func read(ctx context.Context, c *Cluster, inv *inventory, sources []source) error {
	return each(ctx, sources, func(ctx context.Context, _ int, s source) error {
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

// sources are what every cluster may have.
func sources(c *Cluster, inv *inventory) []source {
	core := c.Kube.CoreV1()
	every := metav1.ListOptions{}
	running := metav1.ListOptions{FieldSelector: "status.phase=Running", Limit: podPage}
	static := metav1.ListOptions{LabelSelector: "component in (kube-apiserver, kube-controller-manager, kube-proxy)"}
	all := []source{
		{"nodes", false, listed(&inv.nodes, core.Nodes().List, every)},
		{"pods", false, listed(&inv.pods, core.Pods(metav1.NamespaceAll).List, running)},
		{"the control plane's pods", true, listed(&inv.components, core.Pods(metav1.NamespaceSystem).List, static)},
		{"daemonsets", true, listed(&inv.daemonSets, c.Kube.AppsV1().DaemonSets(metav1.NamespaceAll).List, every)},
		{"namespace liqo", true, got(&inv.liqo, core.Namespaces().Get, "liqo")},
		{"service default/kubernetes", true, got(&inv.kubernetes, core.Services(metav1.NamespaceDefault).Get, "kubernetes")},
		{"ServiceCIDR objects", true, func(ctx context.Context) error { return readServiceCIDRs(ctx, c, inv) }},
		{"API groups", false, func(ctx context.Context) error { return readVersions(ctx, c, inv) }},
		{"admission API", true, func(ctx context.Context) error { return readPolicies(ctx, c, inv) }},
	}
	for _, place := range []types.NamespacedName{kubeadmConfig, kubeProxyConfig, ciliumConfig, flannelConfig, flannelSystemConfig} {
		inv.configMaps[place] = &corev1.ConfigMap{}
		read := got(inv.configMaps[place], core.ConfigMaps(place.Namespace).Get, place.Name)
		all = append(all, source{"ConfigMap " + place.String(), true, read})
	}
	return all
}

// listed reads a list.
func listed[L any](into *L, list func(context.Context, metav1.ListOptions) (*L, error), o metav1.ListOptions) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := list(ctx, o)
		if err == nil {
			*into = *all
		}
		return err
	}
}

// got reads an object.
func got[T any](into *T, get func(context.Context, string, metav1.GetOptions) (*T, error), name string) func(context.Context) error {
	return func(ctx context.Context) error {
		object, err := get(ctx, name, metav1.GetOptions{})
		if err == nil {
			*into = *object
		}
		return err
	}
}

// readServiceCIDRs reads the objects in the stable version (Kubernetes 1.33), else in the beta one (1.31).
func readServiceCIDRs(ctx context.Context, c *Cluster, inv *inventory) error {
	err := listed(&inv.serviceCIDRs, c.Kube.NetworkingV1().ServiceCIDRs().List, metav1.ListOptions{})(ctx)
	if apierrors.IsNotFound(err) {
		var beta networkingv1beta1.ServiceCIDRList
		err = listed(&beta, c.Kube.NetworkingV1beta1().ServiceCIDRs().List, metav1.ListOptions{})(ctx)
		for _, o := range beta.Items {
			stable := networkingv1.ServiceCIDR{ObjectMeta: o.ObjectMeta, Spec: networkingv1.ServiceCIDRSpec(o.Spec)}
			inv.serviceCIDRs.Items = append(inv.serviceCIDRs.Items, stable)
		}
	}
	inv.serviceCIDRAPI = err == nil
	return err
}

func readVersions(ctx context.Context, c *Cluster, inv *inventory) error {
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

// readPolicies finds out whether the stable version of admission policies is there (Kubernetes 1.30). Everybody may
// ask which resources an API has.
func readPolicies(ctx context.Context, c *Cluster, inv *inventory) error {
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

// networkSources are custom resources of CNIs, in the first version of each that the API serves.
func networkSources(c *Cluster, inv *inventory) (all []source) {
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
		all = append(all, source{kind.plural + "." + version.Group, true, listed(kind.into, list, metav1.ListOptions{})})
	}
	return all
}
