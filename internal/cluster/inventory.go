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
	read("nodes", false, func(ctx context.Context) error { return c.readNodes(ctx, inv) })
	read("pods", false, func(ctx context.Context) error { return c.readPods(ctx, inv) })
	read("the control plane's pods", true, func(ctx context.Context) error { return c.readComponents(ctx, inv) })
	read("daemonsets", true, func(ctx context.Context) error { return c.readDaemonSets(ctx, inv) })
	read("namespace liqo", true, func(ctx context.Context) error { return c.readLiqo(ctx, inv) })
	read("service default/kubernetes", true, func(ctx context.Context) error { return c.readKubernetesService(ctx, inv) })
	read("ServiceCIDR objects", true, func(ctx context.Context) error { return c.readServiceCIDRs(ctx, inv) })
	for _, place := range []configMap{kubeadmConfig, kubeProxyConfig, ciliumConfig, flannelConfig, flannelSystemConfig} {
		what := fmt.Sprintf("ConfigMap %s/%s", place.namespace, place.name)
		read(what, true, func(ctx context.Context) error { return c.readConfigMap(ctx, inv, place) })
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

func (c *Cluster) readNodes(ctx context.Context, inv *inventory) error {
	list, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err == nil {
		inv.nodes = list.Items
	}
	return err
}

func (c *Cluster) readPods(ctx context.Context, inv *inventory) error {
	list, err := c.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx,
		metav1.ListOptions{FieldSelector: "status.phase=Running", Limit: podPage})
	if err == nil {
		inv.pods = list.Items
	}
	return err
}

func (c *Cluster) readComponents(ctx context.Context, inv *inventory) error {
	list, err := c.Kube.CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
		metav1.ListOptions{LabelSelector: "component in (kube-apiserver, kube-controller-manager, kube-proxy)"})
	if err == nil {
		inv.components = list.Items
	}
	return err
}

func (c *Cluster) readDaemonSets(ctx context.Context, inv *inventory) error {
	list, err := c.Kube.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err == nil {
		inv.daemonSets = list.Items
	}
	return err
}

func (c *Cluster) readLiqo(ctx context.Context, inv *inventory) error {
	_, err := c.Kube.CoreV1().Namespaces().Get(ctx, "liqo", metav1.GetOptions{})
	inv.liqo = err == nil
	return err
}

func (c *Cluster) readKubernetesService(ctx context.Context, inv *inventory) error {
	service, err := c.Kube.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err == nil {
		inv.kubernetesIP = service.Spec.ClusterIP
	}
	return err
}

// readServiceCIDRs reads the objects in the stable version (Kubernetes 1.33), else in the beta one (1.31).
func (c *Cluster) readServiceCIDRs(ctx context.Context, inv *inventory) error {
	list, err := c.Kube.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err == nil {
		inv.serviceCIDRAPI = true
		for _, o := range list.Items {
			inv.serviceObjects = append(inv.serviceObjects, serviceCIDR{o.Name, o.Spec.CIDRs})
		}
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	beta, err := c.Kube.NetworkingV1beta1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	inv.serviceCIDRAPI = true
	for _, o := range beta.Items {
		inv.serviceObjects = append(inv.serviceObjects, serviceCIDR{o.Name, o.Spec.CIDRs})
	}
	return nil
}

func (c *Cluster) readConfigMap(ctx context.Context, inv *inventory, place configMap) error {
	object, err := c.Kube.CoreV1().ConfigMaps(place.namespace).Get(ctx, place.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	inv.configMaps[place] = object.Data
	return nil
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
