package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// podPage is how many running pods are looked at to see whether a pod CIDR holds what it promises.
const podPage = 500

// inventory is everything that discovery draws its conclusions from. What a cluster does not have, or the
// user may not read, is empty.
type inventory struct {
	nodes          []corev1.Node
	pods           []corev1.Pod // a page of the running ones
	components     []corev1.Pod // the control plane's and kube-proxy, where they run as static pods
	daemonSets     []appsv1.DaemonSet
	configMaps     map[configMap]map[string]string // data
	versions       map[schema.GroupVersion]bool    // of the API
	policies       bool                            // the API has ValidatingAdmissionPolicies
	liqo           bool                            // namespace "liqo" exists
	kubernetesIP   string                          // address of Service default/kubernetes
	serviceCIDRAPI bool
	serviceObjects []serviceCIDR
	calicoPools    []unstructured.Unstructured
	calicoFelix    []unstructured.Unstructured
	ciliumPools    []unstructured.Unstructured
	ciliumNodes    []unstructured.Unstructured
	// openshiftNetworks is the configuration of OpenShift's network operator.
	openshiftNetworks []unstructured.Unstructured

	mu     sync.Mutex
	unread []string // notes: what could not be read, and why
}

// configMap is the place of one.
type configMap struct{ namespace, name string }

// The ConfigMaps that tell of addresses.
var (
	kubeadmConfig       = configMap{metav1.NamespaceSystem, "kubeadm-config"}
	kubeProxyConfig     = configMap{metav1.NamespaceSystem, "kube-proxy"}
	ciliumConfig        = configMap{metav1.NamespaceSystem, "cilium-config"}
	flannelConfig       = configMap{"kube-flannel", "kube-flannel-cfg"}
	flannelSystemConfig = configMap{metav1.NamespaceSystem, "kube-flannel-cfg"}
)

// serviceCIDR is what matters of an object of that kind, whatever its version.
type serviceCIDR struct {
	name  string
	cidrs []string
}

// takeInventory reads everything in parallel.
func (c *Cluster) takeInventory(ctx context.Context) (*inventory, error) {
	inv := &inventory{configMaps: make(map[configMap]map[string]string), versions: make(map[schema.GroupVersion]bool)}
	group, reading := errgroup.WithContext(ctx)
	read := func(what string, optional bool, f func(context.Context) error) {
		group.Go(func() error {
			err := f(reading)
			switch {
			case err == nil, optional && apierrors.IsNotFound(err):
				return nil
			case optional && apierrors.IsForbidden(err):
				inv.noteUnread("not allowed to read " + what)
				return nil
			}
			return fmt.Errorf("read %s of cluster %q: %w", what, c.Context, err)
		})
	}
	core := c.Kube.CoreV1()
	everywhere, system := core.Pods(metav1.NamespaceAll), core.Pods(metav1.NamespaceSystem)
	read("nodes", false, func(ctx context.Context) error {
		return listed(ctx, core.Nodes().List, metav1.ListOptions{}, func(l *corev1.NodeList) { inv.nodes = l.Items })
	})
	read("pods", false, func(ctx context.Context) error {
		running := metav1.ListOptions{FieldSelector: "status.phase=Running", Limit: podPage}
		return listed(ctx, everywhere.List, running, func(l *corev1.PodList) { inv.pods = l.Items })
	})
	read("the control plane's pods", true, func(ctx context.Context) error {
		static := metav1.ListOptions{LabelSelector: "component in (kube-apiserver, kube-controller-manager, kube-proxy)"}
		return listed(ctx, system.List, static, func(l *corev1.PodList) { inv.components = l.Items })
	})
	read("daemonsets", true, func(ctx context.Context) error {
		list := c.Kube.AppsV1().DaemonSets(metav1.NamespaceAll).List
		return listed(ctx, list, metav1.ListOptions{}, func(l *appsv1.DaemonSetList) { inv.daemonSets = l.Items })
	})
	read("namespace liqo", true, func(ctx context.Context) error {
		return got(ctx, core.Namespaces().Get, "liqo", func(*corev1.Namespace) { inv.liqo = true })
	})
	read("service default/kubernetes", true, func(ctx context.Context) error {
		get := core.Services(metav1.NamespaceDefault).Get
		return got(ctx, get, "kubernetes", func(s *corev1.Service) { inv.kubernetesIP = s.Spec.ClusterIP })
	})
	read("ServiceCIDR objects", true, func(ctx context.Context) error { return c.readServiceCIDRs(ctx, inv) })
	for _, place := range []configMap{kubeadmConfig, kubeProxyConfig, ciliumConfig, flannelConfig, flannelSystemConfig} {
		read(fmt.Sprintf("ConfigMap %s/%s", place.namespace, place.name), true, func(ctx context.Context) error {
			return got(ctx, core.ConfigMaps(place.namespace).Get, place.name, func(cm *corev1.ConfigMap) {
				inv.mu.Lock()
				defer inv.mu.Unlock()
				inv.configMaps[place] = cm.Data
			})
		})
	}
	read("API groups", false, func(ctx context.Context) error { return c.readVersions(ctx, inv) })
	read("admission API", true, func(ctx context.Context) error { return c.readPolicies(ctx, inv) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return inv, c.readNetworkResources(ctx, inv)
}

func (inv *inventory) noteUnread(text string) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.unread = append(inv.unread, text)
}

// listed hands a list to keep, once it is read.
func listed[L any](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), o metav1.ListOptions, keep func(L)) error {
	all, err := list(ctx, o)
	if err == nil {
		keep(all)
	}
	return err
}

// got hands an object to keep, once it is read.
func got[T any](ctx context.Context, get func(context.Context, string, metav1.GetOptions) (T, error), name string, keep func(T)) error {
	object, err := get(ctx, name, metav1.GetOptions{})
	if err == nil {
		keep(object)
	}
	return err
}

// readServiceCIDRs reads the objects in the stable version (Kubernetes 1.33), else in the beta one (1.31).
func (c *Cluster) readServiceCIDRs(ctx context.Context, inv *inventory) error {
	keep := func(name string, cidrs []string) {
		inv.serviceObjects = append(inv.serviceObjects, serviceCIDR{name, cidrs})
	}
	err := listed(ctx, c.Kube.NetworkingV1().ServiceCIDRs().List, metav1.ListOptions{}, func(l *networkingv1.ServiceCIDRList) {
		for _, o := range l.Items {
			keep(o.Name, o.Spec.CIDRs)
		}
	})
	if apierrors.IsNotFound(err) {
		err = listed(ctx, c.Kube.NetworkingV1beta1().ServiceCIDRs().List, metav1.ListOptions{}, func(l *networkingv1beta1.ServiceCIDRList) {
			for _, o := range l.Items {
				keep(o.Name, o.Spec.CIDRs)
			}
		})
	}
	inv.serviceCIDRAPI = err == nil
	return err
}

func (c *Cluster) readVersions(ctx context.Context, inv *inventory) error {
	client := discovery.ToServerGroupsInterfaceWithContext(c.Kube.Discovery())
	groups, err := client.ServerGroupsWithContext(ctx)
	if err != nil {
		return err
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			inv.versions[schema.GroupVersion{Group: group.Name, Version: version.Version}] = true
		}
	}
	return nil
}

// readPolicies finds out whether the stable version of admission policies is there (Kubernetes 1.30). Everybody may
// ask which resources an API has.
func (c *Cluster) readPolicies(ctx context.Context, inv *inventory) error {
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

// readNetworkResources reads custom resources of CNIs, in the first version of each that the API serves.
func (c *Cluster) readNetworkResources(ctx context.Context, inv *inventory) error {
	group, ctx := errgroup.WithContext(ctx)
	read := func(into *[]unstructured.Unstructured, plural string, versions ...schema.GroupVersion) {
		for _, version := range versions {
			if !inv.versions[version] {
				continue
			}
			group.Go(func() error {
				list, err := c.Dynamic.Resource(version.WithResource(plural)).List(ctx, metav1.ListOptions{})
				switch {
				case err == nil:
					*into = list.Items
				case apierrors.IsForbidden(err):
					inv.noteUnread("not allowed to read " + plural + "." + version.Group)
				case !apierrors.IsNotFound(err):
					return fmt.Errorf("read %s.%s of cluster %q: %w", plural, version.Group, c.Context, err)
				}
				return nil
			})
			return
		}
	}
	calico := schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}
	calicoNative := schema.GroupVersion{Group: "projectcalico.org", Version: "v3"}
	cilium := schema.GroupVersion{Group: "cilium.io", Version: "v2"}
	ciliumAlpha := schema.GroupVersion{Group: "cilium.io", Version: "v2alpha1"}
	read(&inv.calicoPools, "ippools", calico, calicoNative)
	read(&inv.calicoFelix, "felixconfigurations", calico, calicoNative)
	read(&inv.ciliumNodes, "ciliumnodes", cilium)
	read(&inv.ciliumPools, "ciliumpodippools", ciliumAlpha)
	read(&inv.openshiftNetworks, "networks", schema.GroupVersion{Group: "operator.openshift.io", Version: "v1"})
	return group.Wait()
}
