package templates

import (
	"errors"
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TestPort is the TCP and UDP port of a path test's servers, and of the Service for those of the peer.
const TestPort = 7000

// TestNodePort is the TCP port of servers in the host network.
const TestNodePort = 6094

// unprivileged is the user and group ID of pods without privileges.
const unprivileged = 65532

// PathTestValues are the parameters of a path test's pods.
type PathTestValues struct {
	Namespace string
	Image     string
	Pods      Pods
	Nodes     []string // that take part; empty: all except Without
	Without   []string // lost nodes
	Run       string   // of the run of liqoctl: see records.AnnotationRun
	Args      []string // of the command `helper test ask` or `helper test serve`
	Host      bool     // the servers run in the host network
}

// PathTestServer renders the servers of a path test: a pod on each node, in the pod network unless Host is set.
func PathTestServer(v PathTestValues) (*appsv1.DaemonSet, error) {
	set, err := v.render(records.ComponentTestServer)
	if err != nil {
		return nil, err
	}
	pod := &set.Spec.Template.Spec
	pod.HostNetwork, pod.InitContainers = v.Host, nil
	pod.Containers[0].Args = append([]string{"helper", "test", "serve"}, v.Args...)
	return set, nil
}

// PathTestProbes renders the clients of the servers: on each node a pod in the pod network, and one in the host
// network.
func PathTestProbes(v PathTestValues) (pods, nodes *appsv1.DaemonSet, err error) {
	nodes, err = v.render(records.ComponentTestNode)
	if err != nil {
		return nil, nil, err
	}
	if pods, err = v.render(records.ComponentTestPod); err != nil {
		return nil, nil, err
	}
	pods.Spec.Template.Spec.HostNetwork = false
	nodes.Spec.Template.Spec.InitContainers[0].Args = append(nodes.Spec.Template.Spec.InitContainers[0].Args, "--from-node")
	return pods, nodes, nil
}

// render derives pods without capabilities from those of a verification, which have no API permissions. They probe once
// and then wait.
func (v PathTestValues) render(component string) (*appsv1.DaemonSet, error) {
	set, err := Verify(VerifyValues{Namespace: v.Namespace, Image: v.Image, Pods: v.Pods, Run: v.Run, Without: v.Without})
	if err != nil {
		return nil, fmt.Errorf("render the path test: %w", err)
	}
	labels := map[string]string{records.LabelComponent: component}
	identify(set, v.Namespace, component, labels)
	set.Spec.Selector.MatchLabels = labels
	template := &set.Spec.Template
	template.Labels = merged(template.Labels, labels)
	pod := &template.Spec
	pod.SecurityContext.RunAsNonRoot = new(true)
	pod.SecurityContext.RunAsUser, pod.SecurityContext.RunAsGroup = new(int64(unprivileged)), new(int64(unprivileged))
	v.place(pod)
	ask := &pod.InitContainers[0]
	ask.Name, ask.Args = "ask", append([]string{"helper", "test", "ask"}, v.Args...)
	for _, c := range []*corev1.Container{ask, &pod.Containers[0]} {
		c.SecurityContext.Capabilities.Add = nil
		c.Env = []corev1.EnvVar{
			{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			{Name: "NODE_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}},
		}
	}
	return set, nil
}

// place restricts pods to some of the nodes. A term can have only one name, because the API has no list for it.
func (v PathTestValues) place(pod *corev1.PodSpec) {
	if len(v.Nodes) == 0 {
		return
	}
	required := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	every := required.NodeSelectorTerms[0]
	required.NodeSelectorTerms = nil
	for _, name := range v.Nodes {
		term := *every.DeepCopy()
		term.MatchFields = []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
}

// PathTestService renders the Service whose endpoints are the servers in the peer: see PathTestEndpoints.
func PathTestService(namespace, run string) (*corev1.Service, error) {
	if err := validateNamespace(namespace); err != nil {
		return nil, fmt.Errorf("render the path test: %w", err)
	}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		Spec: corev1.ServiceSpec{
			Type:           corev1.ServiceTypeNodePort,
			IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack),
			IPFamilies:     []corev1.IPFamily{corev1.IPv4Protocol},
			Ports:          []corev1.ServicePort{{Name: "test", Protocol: corev1.ProtocolTCP, Port: TestPort}},
		},
	}
	identify(service, namespace, records.ComponentTestServer, map[string]string{records.LabelComponent: records.ComponentTestServer})
	annotateRun(run, &service.ObjectMeta)
	return service, nil
}

// PathTestEndpoints renders the endpoints of an existing Service. They are deleted with it.
func PathTestEndpoints(service *corev1.Service, addresses []netip.Addr) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("test"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(TestPort))}},
	}
	identify(slice, service.Namespace, service.Name, map[string]string{
		records.LabelComponent: records.ComponentTestServer, discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "liqonet.io",
	})
	slice.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: service.Name, UID: service.UID}}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return slice
}

// managedTest returns the objects of a path test.
func managedTest(namespace, image string) ([]Object, error) {
	v := PathTestValues{Namespace: namespace, Image: image}
	server, err := PathTestServer(v)
	pods, nodes, err2 := PathTestProbes(v)
	service, err3 := PathTestService(namespace, v.Run)
	if err := errors.Join(err, err2, err3); err != nil {
		return nil, err
	}
	return []Object{server, pods, nodes, service, PathTestEndpoints(service, nil)}, nil
}
