package templates

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// GatewayValues are what differs between gateways.
type GatewayValues struct {
	Namespace string
	Peering   string // its name
	Image     string
	Pods      Pods
	Role      records.Role
	// Implementation of WireGuard. With Kernel the pod gets no /dev/net/tun; with the others a node without
	// that device cannot run it.
	Implementation records.Implementation
	// Service is how the client reaches the server; the client's gateway has none.
	Service ServiceValues
}

// ServiceValues describe the Service in front of a server's gateway.
type ServiceValues struct {
	Type           corev1.ServiceType // NodePort, LoadBalancer or ClusterIP
	Port           uint16             // UDP; 0 is TunnelPort
	NodePort       uint16             // 0 lets the cluster choose
	LoadBalancerIP netip.Addr         // the zero value lets the provider choose
	Annotations    map[string]string
}

// Gateway renders the objects of a peering's gateway. Its two ConfigMaps have no data: they exist so that the
// gateway needs no right but to change objects with these names, and applying them again leaves its data.
// The peering's record and its Secret are not among the objects.
func Gateway(v GatewayValues) ([]Object, error) {
	if err := v.validate(); err != nil {
		return nil, fmt.Errorf("render gateway of peering %q: %w", v.Peering, err)
	}
	var r reader
	account := read[corev1.ServiceAccount](&r, "gateway/serviceaccount.yaml")
	role := read[rbacv1.Role](&r, "gateway/role.yaml")
	binding := read[rbacv1.RoleBinding](&r, "gateway/rolebinding.yaml")
	place := read[corev1.ConfigMap](&r, "gateway/configmap.yaml")
	status := read[corev1.ConfigMap](&r, "gateway/configmap.yaml")
	service := read[corev1.Service](&r, "gateway/service.yaml")
	deployment := read[appsv1.Deployment](&r, "gateway/deployment.yaml")
	if r.err != nil {
		return nil, r.err
	}
	labels := records.Identity{Component: records.ComponentGateway, Peering: v.Peering}.Labels()
	for _, o := range []Object{account, role, binding, place, service, deployment} {
		identify(o, v.Namespace, records.GatewayID{Peering: v.Peering, Number: 1}.Name(), labels)
	}
	identify(status, v.Namespace, records.GatewayID{Peering: v.Peering, Number: 1}.StatusName(), records.Identity{Component: records.ComponentStatus, Peering: v.Peering}.Labels())
	role.Rules = append(role.Rules,
		onConfigMaps([]string{"list", "watch"}, records.FabricName, records.PeeringName(v.Peering), place.Name, status.Name),
		onConfigMaps([]string{"patch"}, place.Name, status.Name))
	binding.RoleRef, binding.Subjects = grant(role, "Role", account)
	v.Service.set(service, labels)
	v.setDeployment(deployment, account.Name, labels)
	objects := []Object{account, role, binding, place, status}
	if v.Role == records.Server {
		objects = append(objects, service)
	}
	return append(objects, deployment), nil
}

// onConfigMaps gives rights on the ConfigMaps of these names and on no other. A list, or a watch, that selects one
// object by its name counts as a request for that name.
func onConfigMaps(verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs, ResourceNames: names}
}

func (v GatewayValues) validate() error {
	errs := []error{
		validateNamespace(v.Namespace), records.ValidateName(v.Peering), validateImage(v.Image), v.Pods.validate(), v.Implementation.Validate(),
	}
	switch v.Role {
	case records.Client:
	case records.Server:
		errs = append(errs, v.Service.validate())
	default:
		errs = append(errs, fmt.Errorf("role %q: want server or client", v.Role))
	}
	return errors.Join(errs...)
}

func (v ServiceValues) validate() error {
	types := []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}
	switch {
	case !slices.Contains(types, v.Type):
		return fmt.Errorf("service type %q: want LoadBalancer, NodePort or ClusterIP", v.Type)
	case v.NodePort != 0 && v.Type == corev1.ServiceTypeClusterIP:
		return fmt.Errorf("node port %d: a Service of type ClusterIP has none", v.NodePort)
	case v.LoadBalancerIP.IsValid() && v.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Errorf("load balancer address %s: a Service of type %s has none", v.LoadBalancerIP, v.Type)
	}
	return nil
}

func (v ServiceValues) set(service *corev1.Service, pods map[string]string) {
	service.Annotations = maps.Clone(v.Annotations)
	service.Spec.Type = v.Type
	service.Spec.Selector = pods
	port := &service.Spec.Ports[0]
	port.Port, port.NodePort = TunnelPort, int32(v.NodePort)
	if v.Port != 0 {
		port.Port = int32(v.Port)
	}
	if v.LoadBalancerIP.IsValid() {
		service.Spec.LoadBalancerIP = v.LoadBalancerIP.String()
	}
	if v.Type != corev1.ServiceTypeClusterIP {
		// Any node takes the tunnel's packets: the endpoint stays the same when the gateway moves.
		service.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
}

func (v GatewayValues) setDeployment(deployment *appsv1.Deployment, account string, labels map[string]string) {
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	v.Pods.set(deployment, &deployment.Spec.Template, labels)
	pod := &deployment.Spec.Template.Spec
	v.Pods.place(pod)
	pod.ServiceAccountName = account
	pod.Volumes[0].Secret.SecretName = records.PeeringName(v.Peering)
	container := &pod.Containers[0]
	container.Image = v.Image
	container.Args = append(container.Args, v.Peering)
	container.Env = append(container.Env, corev1.EnvVar{Name: "PEERING", Value: v.Peering})
	if v.Implementation != records.Kernel {
		mountTUN(pod, container)
	}
}

// mountTUN gives a container the device that WireGuard in userspace reads and writes packets by.
func mountTUN(pod *corev1.PodSpec, container *corev1.Container) {
	const name, path = "tun", "/dev/net/tun"
	device := corev1.HostPathCharDev
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &device},
	}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
}
