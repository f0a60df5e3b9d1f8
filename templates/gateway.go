package templates

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// GatewayValues are the parameters of the gateways of a peering.
type GatewayValues struct {
	Namespace string
	Peering   string // name of the peering
	Image     string
	Pods      Pods
	Role      records.Role
	Settings  records.GatewaySettings
	// Gateways is the number of gateways of this cluster, Tunnels the number of tunnels of each: one to each gateway of
	// the peer.
	Gateways, Tunnels int
	// Keys identify the keys of each gateway, as wireguard.KeyID; none or "": not known yet.
	Keys []string
}

// AnnotationKey is an annotation of a gateway's pod: it identifies the keys with which the pod must start, so that
// other keys in the Secret are another template, and replace the pod.
const AnnotationKey = "liqonet.io/key"

// Gateways renders the objects of a peering's gateways. The two ConfigMaps of each have no data. They exist so that a
// gateway only needs the permission to change objects with these names; applying them again keeps their data. The
// peering's record and the Secrets are not included.
func Gateways(v GatewayValues) ([]Object, error) {
	if err := v.validate(); err != nil {
		return nil, fmt.Errorf("render gateways of peering %q: %w", v.Peering, err)
	}
	var r reader
	var objects, deployments []Object
	for i := range v.Gateways {
		own, deployment := v.gateway(&r, records.GatewayID{Peering: v.Peering, Number: i + 1})
		objects, deployments = append(objects, own...), append(deployments, deployment)
	}
	common, err := v.common(&r)
	if err != nil {
		return nil, fmt.Errorf("render gateways of peering %q: %w", v.Peering, err)
	}
	return slices.Concat(objects, common, deployments), r.err
}

// gateway renders the objects of one gateway.
func (v GatewayValues) gateway(r *reader, id records.GatewayID) (own []Object, _ *appsv1.Deployment) {
	account := read[corev1.ServiceAccount](r, "gateway/serviceaccount.yaml")
	role := read[rbacv1.Role](r, "gateway/role.yaml")
	binding := read[rbacv1.RoleBinding](r, "gateway/rolebinding.yaml")
	place := read[corev1.ConfigMap](r, "gateway/configmap.yaml")
	status := read[corev1.ConfigMap](r, "gateway/configmap.yaml")
	deployment := read[appsv1.Deployment](r, "gateway/deployment.yaml")
	spread := read[corev1.Affinity](r, "gateway/spread.yaml")
	if r.err != nil {
		return nil, nil
	}
	labels := id.Identity(records.ComponentGateway).Labels()
	for _, o := range []Object{account, role, binding, place, deployment} {
		identify(o, v.Namespace, id.Name(), labels)
	}
	identify(status, v.Namespace, id.StatusName(), id.Identity(records.ComponentStatus).Labels())
	role.Rules = append(role.Rules,
		onConfigMaps([]string{"list", "watch"}, records.FabricName, records.PeeringName(v.Peering), place.Name, status.Name),
		onConfigMaps([]string{"patch"}, place.Name, status.Name))
	binding.RoleRef, binding.Subjects = grant(role, "Role", account)
	v.setDeployment(deployment, id, account.Name)
	if id.Number > 1 {
		for _, term := range spread.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			term.PodAffinityTerm.LabelSelector.MatchLabels = v.labels()
		}
		deployment.Spec.Template.Spec.Affinity = spread
	}
	return []Object{account, role, binding, place, status}, deployment
}

// labels returns the labels that the pods of all gateways share.
func (v GatewayValues) labels() map[string]string {
	return records.Identity{Component: records.ComponentGateway, Peering: v.Peering}.Labels()
}

// common renders the objects that all gateways share.
func (v GatewayValues) common(r *reader) (objects []Object, err error) {
	budget := read[policyv1.PodDisruptionBudget](r, "gateway/budget.yaml")
	if r.err != nil {
		return nil, r.err
	}
	identify(budget, v.Namespace, records.ServiceName(v.Peering), v.labels())
	if v.Role == records.Server {
		objects, err = v.services(r)
	}
	if v.Gateways > 1 {
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: v.labels()}
		objects = append(objects, budget)
	}
	return objects, err
}

// onConfigMaps grants verbs on the ConfigMaps with these names only. A list or watch that selects one object by its
// name is authorized as a request for that name.
func onConfigMaps(verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs, ResourceNames: names}
}

func (v GatewayValues) validate() error {
	errs := []error{
		validateNamespace(v.Namespace), records.ValidateName(v.Peering), validateImage(v.Image), v.Pods.Validate(), v.Settings.Validate(),
	}
	for _, count := range []int{v.Gateways, v.Tunnels} {
		if count < 1 || count > records.MaxGateways {
			errs = append(errs, fmt.Errorf("%d gateways: want 1 to %d", count, records.MaxGateways))
		}
	}
	if v.Role != records.Client && v.Role != records.Server {
		errs = append(errs, fmt.Errorf("role %q: want server or client", v.Role))
	}
	return errors.Join(errs...)
}

// setDeployment sets the fields of a gateway's Deployment.
func (v GatewayValues) setDeployment(deployment *appsv1.Deployment, id records.GatewayID, account string) {
	labels := id.Identity(records.ComponentGateway).Labels()
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	v.Pods.set(deployment, &deployment.Spec.Template, labels)
	if id.Number <= len(v.Keys) {
		metav1.SetMetaDataAnnotation(&deployment.Spec.Template.ObjectMeta, AnnotationKey, v.Keys[id.Number-1])
	}
	pod := &deployment.Spec.Template.Spec
	v.Pods.place(pod)
	pod.ServiceAccountName = account
	pod.Volumes[0].Secret.SecretName = id.KeysName()
	container := &pod.Containers[0]
	container.Image = v.Image
	container.Args = append(container.Args, v.Peering)
	container.Env = append(container.Env, corev1.EnvVar{Name: "PEERING", Value: v.Peering})
	if id.Number > 1 {
		container.Args = append(container.Args, "--gateway", strconv.Itoa(id.Number))
		container.Env = append(container.Env, corev1.EnvVar{Name: "GATEWAY", Value: strconv.Itoa(id.Number)})
	}
	webSocket := corev1.ContainerPort{Name: records.WebSocketPortName(id.Number), ContainerPort: WebSocketPort, Protocol: corev1.ProtocolTCP}
	container.Ports = slices.Concat(tunnelPorts(id.Number), []corev1.ContainerPort{webSocket}, container.Ports)
	if secret := *v.Settings.Complete().ProxySecret; secret != "" && v.Role == records.Client {
		mountProxy(pod, container, secret)
	}
	if *v.Settings.Complete().Implementation != records.Kernel {
		mountTUN(pod, container)
	}
}

// tunnelPorts returns the ports of all tunnels that a gateway can have, so that the pod need not change when the peer
// gets more gateways.
func tunnelPorts(gateway int) []corev1.ContainerPort {
	ports := make([]corev1.ContainerPort, records.MaxGateways)
	for i := range ports {
		t := records.TunnelID{Server: gateway, Client: i + 1}
		ports[i] = corev1.ContainerPort{Name: t.PortName(), ContainerPort: int32(TunnelPort + i), Protocol: corev1.ProtocolUDP}
	}
	return ports
}

// mountProxy mounts the user and password of the client's proxy, and nothing else that the Secret has. The settings are
// the server's choice: without the Secret the gateway runs all the same.
func mountProxy(pod *corev1.PodSpec, container *corev1.Container, secret string) {
	const name = "proxy"
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, Optional: new(true), DefaultMode: new(int32(0o400)),
		Items: []corev1.KeyToPath{{Key: "username", Path: "username"}, {Key: "password", Path: "password"}},
	}}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: ProxyPath, ReadOnly: true})
}

// mountTUN mounts the device through which WireGuard in userspace reads and writes packets.
func mountTUN(pod *corev1.PodSpec, container *corev1.Container) {
	const name, path = "tun", "/dev/net/tun"
	device := corev1.HostPathCharDev
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &device},
	}})
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path})
}
