//go:build lab

package templates

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// The tests in this file need a real API server, that of $KUBECONFIG: lab/e2e starts one and runs them.

// policed is the namespace of an installation without nodes.
const policed = "policed"

// apiServer is a client for the whole API.
type apiServer struct {
	*kubernetes.Clientset
	config *rest.Config
}

// installed installs the objects of an installation and of a peering, with the policies in effect.
func installed(t *testing.T) apiServer {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	require.NoError(t, err)
	config.QPS = -1 // no limit
	a := apiServer{kubernetes.NewForConfigOrDie(config), config}
	base, err := Base(BaseValues{Namespace: policed, Image: image, Policies: true})
	require.NoError(t, err)
	peering, err := Gateways(GatewayValues{
		Namespace: policed, Peering: "b", Image: image, Role: records.Server, Gateways: 1, Tunnels: 1,
		Settings: records.GatewaySettings{ServiceType: new(records.NodePort)},
	})
	require.NoError(t, err)
	a.create(t, append(base, peering...)...)
	return a
}

// create creates objects for the duration of the test.
func (a apiServer) create(t *testing.T, objects ...Object) {
	t.Helper()
	for _, o := range objects {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		group, resource := resourceOf(o)
		path := "/api/v1"
		if group != "" {
			path = "/apis/" + o.GetObjectKind().GroupVersionKind().GroupVersion().String()
		}
		if o.GetNamespace() != "" {
			path += "/namespaces/" + o.GetNamespace()
		}
		if code, response := a.send(t, http.MethodPost, path+"/"+resource, string(text)); code != http.StatusCreated {
			t.Fatalf("create %s %s: %d %s", resource, o.GetName(), code, response)
		}
		t.Cleanup(func() {
			_ = a.CoreV1().RESTClient().Delete().AbsPath(path, resource, o.GetName()).Do(context.WithoutCancel(t.Context())).Error()
		})
	}
}

// send sends a request and returns the status code and text of the response.
func (a apiServer) send(t *testing.T, verb, path, body string) (code int, response string) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	request := a.CoreV1().RESTClient().Verb(verb).AbsPath(path).Body([]byte(body)).SetHeader("Content-Type", "application/json")
	if verb == http.MethodPatch {
		request.SetHeader("Content-Type", "application/merge-patch+json")
	}
	if query != "" {
		request.Param("dryRun", "All")
	}
	raw, err := request.Do(t.Context()).StatusCode(&code).Raw()
	if code == 0 {
		t.Error(err)
	}
	return code, string(raw)
}

// user returns a client with a token of an account that has the roles of a level.
func (a apiServer) user(t *testing.T, level Level) apiServer {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: string(level), Namespace: "default"}}
	_, err := a.CoreV1().ServiceAccounts(account.Namespace).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
	objects, err := Access(policed, level)
	require.NoError(t, err)
	var r reader
	binding, clusterBinding := read[rbacv1.RoleBinding](&r, "base/rolebinding.yaml"), read[rbacv1.ClusterRoleBinding](&r, "base/clusterrolebinding.yaml")
	if r.err != nil {
		t.Fatal(r.err)
	}
	for _, o := range objects {
		switch role := o.(type) {
		case *rbacv1.Role:
			binding.Name, binding.Namespace = role.Name, role.Namespace
			binding.RoleRef, binding.Subjects = grant(role, "Role", account)
		case *rbacv1.ClusterRole:
			clusterBinding.Name = role.Name
			clusterBinding.RoleRef, clusterBinding.Subjects = grant(role, "ClusterRole", account)
		}
	}
	objects = append(objects, binding, clusterBinding)
	a.create(t, objects...)
	return a.with(t, account.Namespace, account.Name, nil)
}

// with returns a client with a token of an account, bound to an object; nil: to none.
func (a apiServer) with(t *testing.T, namespace, account string, bound *authenticationv1.BoundObjectReference) apiServer {
	t.Helper()
	token, err := a.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: bound},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(a.config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	return apiServer{kubernetes.NewForConfigOrDie(config), config}
}

// as returns a client with a token of an account, as its pod on a node has it.
func (a apiServer) as(t *testing.T, account, node string) apiServer {
	t.Helper()
	pods := a.CoreV1().Pods(policed)
	none := false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-on-" + node, Namespace: policed},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: account, AutomountServiceAccountToken: &none,
			Containers: []corev1.Container{{Name: "c", Image: "x", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: &none, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
	if _, err := a.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	made, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return a.with(t, policed, account, &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: made.Name, UID: made.UID})
}

// attempt is a request, and a part of the reason for its rejection; "": it is accepted.
type attempt struct {
	what             string
	verb, path, body string
	refusal          string
}

func (a apiServer) try(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, try := range attempts {
		code, response := a.send(t, try.verb, try.path, try.body)
		if taken := code < http.StatusMultipleChoices; taken != (try.refusal == "") || !strings.Contains(response, try.refusal) {
			t.Errorf("%s: %d %.300s; want refusal %q", try.what, code, response, try.refusal)
		}
	}
}

// Paths of requests that change nothing.
const (
	dry        = "?dryRun=All"
	services   = "/api/v1/namespaces/" + policed + "/services"
	configMaps = "/api/v1/namespaces/" + policed + "/configmaps"
	events     = "/api/v1/namespaces/" + policed + "/events"
	podsPath   = "/api/v1/namespaces/" + policed + "/pods"
	leases     = "/apis/coordination.k8s.io/v1/namespaces/" + policed + "/leases"
)

// lease returns the text of a node's Lease.
func lease(name, node, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"liqonet.io/component":"node","liqonet.io/node":%q}%s},"spec":{"holderIdentity":%q}}`, name, node, more, node)
}

// event returns the text of an event.
func event(name, kind, about, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q%s},"reason":"Test","message":"m","type":"Normal","involvedObject":{"kind":%q,"name":%q,"namespace":%q}}`, name, more, kind, about, policed)
}

// garbage returns a metadata field with a long value.
func garbage(field string, bytes int) string {
	long := strings.Repeat("x", bytes)
	switch field {
	case "managedFields":
		return fmt.Sprintf(`,"managedFields":[{"manager":"m","operation":"Update","apiVersion":"coordination.k8s.io/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{"f:%s":{}}}}}]`, long)
	default:
		return fmt.Sprintf(`,"annotations":{"liqonet.io/node":%q}`, long)
	}
}

// TestLabPolicies: the admission policies of a real API server limit what tokens of helpers and users of level operate
// can write.
func TestLabPolicies(t *testing.T) {
	a := installed(t)
	wait.Until(t, "the policies are in effect", time.Minute, func() bool {
		code, _ := a.send(t, http.MethodPost, services+dry, `{"metadata":{"name":"x"},"spec":{"ports":[{"port":1}]}}`)
		return code == http.StatusUnprocessableEntity || code == http.StatusForbidden
	})
	t.Run("Services", func(t *testing.T) { testServices(t, a) })
	t.Run("Ingresses", func(t *testing.T) { testIngresses(t, a) })
	t.Run("operate", func(t *testing.T) { testOperate(t, a) })
	t.Run("device", func(t *testing.T) { testDevice(t, a) })
	t.Run("records", func(t *testing.T) { testRecords(t, a) })
	t.Run("gateway", func(t *testing.T) { testGatewayAmounts(t, a.as(t, "gateway-b", "n1")) })
	t.Run("node", func(t *testing.T) { testNodeAmounts(t, a) })
	t.Run("Leases", func(t *testing.T) { testLeases(t, a) })
	t.Run("reinstalled", func(t *testing.T) { testReinstalled(t, a) }) // last: policy claims sees no new Lease then
}

func testServices(t *testing.T, a apiServer) {
	service := func(spec string) string { return `{"metadata":{"name":"x"},"spec":{` + spec + `}}` }
	const ports, gateway = `"ports":[{"port":51840,"protocol":"UDP"}]`, `"selector":{"liqonet.io/component":"gateway"}`
	webSocket := func(port, target string) string {
		return `"ports":[{"port":` + port + `,"protocol":"TCP","targetPort":"` + target + `"}],`
	}
	a.try(t, []attempt{
		{"as liqonet's", http.MethodPost, services + dry, service(ports + "," + gateway + `,"type":"LoadBalancer","loadBalancerIP":"192.0.2.1","allocateLoadBalancerNodePorts":true`), ""},
		{"at a host's address", http.MethodPost, services + dry, service(ports + "," + gateway + `,"externalIPs":["192.0.2.7"]`), "no external addresses"},
		{"by an update", http.MethodPatch, services + "/gateway-b" + dry, `{"spec":{"externalIPs":["192.0.2.7"]}}`, "no external addresses"},
		{"another name", http.MethodPost, services + dry, service(`"type":"ExternalName","externalName":"example.com"`), "no external addresses"},
		{"without pods", http.MethodPost, services + dry, service(ports), "lead to its gateways"},
		{"to other pods", http.MethodPost, services + dry, service(ports + `,"selector":{"app":"x"}`), "lead to its gateways"},
		{"to nodes", http.MethodPost, services + dry, service(`"ports":[{"port":10250}],"selector":{"liqonet.io/component":"fabric"}`), "lead to its gateways"},
		{"to nodes in a test", http.MethodPost, services + dry, service(`"ports":[{"port":10250}],"selector":{"liqonet.io/component":"test-server"}`), "lead to its gateways"},
		{"a load balancer's port of all nodes", http.MethodPost, services + dry, `{"metadata":{"name":"test-server"},"spec":{"ports":[{"port":10250}],"type":"LoadBalancer"}}`, "have a load balancer"},
		{"a test's server", http.MethodPost, services + dry, `{"metadata":{"name":"test-server"},"spec":{"ports":[{"port":6094}],"type":"NodePort"}}`, ""},
		{"TCP of a gateway", http.MethodPost, services + dry, service(`"ports":[{"port":443}],` + gateway), "which are UDP"},
		{"WebSocket", http.MethodPost, services + dry, service(webSocket("443", "websocket2") + gateway + `,"type":"LoadBalancer"`), ""},
		{"WebSocket at another port", http.MethodPost, services + dry, service(webSocket("8443", "websocket") + gateway + `,"type":"LoadBalancer"`), ""},
		{"WebSocket of an Ingress", http.MethodPost, services + dry, service(webSocket("80", "websocket") + gateway), ""},
		{"probes as WebSocket", http.MethodPost, services + dry, service(webSocket("443", "probes") + gateway), "which are UDP"},
		{"WebSocket at the port of every kubelet", http.MethodPost, services + dry, service(webSocket("10250", "websocket") + gateway + `,"type":"LoadBalancer"`), "which are UDP"},
		{"WebSocket at the port of every node's SSH", http.MethodPost, services + dry, service(webSocket("22", "websocket") + gateway + `,"type":"LoadBalancer"`), "which are UDP"},
	})
}

// testOperate checks that level operate does not gain further permissions from the kinds that it may write.
func testOperate(t *testing.T, a apiServer) {
	u := a.user(t, Operate)
	const rbac, group = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + policed, `"apiGroup":"rbac.authorization.k8s.io"`
	binding := func(kind, name string) string {
		return `{"metadata":{"name":"x"},"roleRef":{` + group + `,"kind":"` + kind + `","name":"` + name + `"},"subjects":[{` + group + `,"kind":"User","name":"x"}]}`
	}
	wait.Until(t, "it has its rights", time.Minute, func() bool {
		code, _ := u.send(t, http.MethodPost, rbac+"/rolebindings"+dry, binding("Role", "gateway-b"))
		return code == http.StatusCreated
	})
	pod := `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"x"}]}}`
	u.try(t, []attempt{
		{"a Service of liqonet's", http.MethodPost, services + dry, `{"metadata":{"name":"x"},"spec":{"ports":[{"port":1,"protocol":"UDP"}],"selector":{"liqonet.io/component":"gateway"}}}`, ""},
		{"one at a host's address", http.MethodPatch, services + "/gateway-b" + dry, `{"spec":{"externalIPs":["192.0.2.7"]}}`, "no external addresses"},
		{"an address of a load balancer", http.MethodPatch, services + "/gateway-b/status" + dry, `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`, "cannot patch resource"},
		{"a Service elsewhere", http.MethodPost, "/api/v1/namespaces/default/services" + dry, `{"metadata":{"name":"x"},"spec":{"ports":[{"port":1}]}}`, "cannot create resource"},
		{"endpoints", http.MethodPost, "/api/v1/namespaces/" + policed + "/endpoints" + dry, `{"metadata":{"name":"x"}}`, "cannot create resource"},
		{"an EndpointSlice", http.MethodPost, "/apis/discovery.k8s.io/v1/namespaces/" + policed + "/endpointslices" + dry, `{"metadata":{"name":"x"},"addressType":"IPv4"}`, "cannot create resource"},
		{"more rights", http.MethodPost, rbac + "/roles" + dry, `{"metadata":{"name":"x"},"rules":[{"apiGroups":[""],"resources":["pods/exec"],"verbs":["create"]}]}`, "attempting to grant"},
		{"the rights of nodes", http.MethodPost, rbac + "/rolebindings" + dry, binding("Role", "node"), "attempting to grant"},
		{"all rights", http.MethodPost, rbac + "/rolebindings" + dry, binding("ClusterRole", "cluster-admin"), "attempting to grant"},
		{"rights elsewhere", http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings" + dry, binding("Role", "x"), "cannot create resource"},
		{"a long record", http.MethodPost, configMaps + dry, `{"metadata":{"name":"peering-x"},"data":{"record":"` + strings.Repeat("x", 256<<10) + `"}}`, "more than a record"},
		{"a pod", http.MethodPost, podsPath + dry, pod, "cannot create resource"},
		{"a DaemonSet", http.MethodPost, "/apis/apps/v1/namespaces/" + policed + "/daemonsets" + dry, `{"metadata":{"name":"x"}}`, "cannot create resource"},
		{"a Lease", http.MethodPost, leases + dry, lease("node-8009", "n1", ""), "cannot create resource"},
		{"a budget elsewhere", http.MethodPost, "/apis/policy/v1/namespaces/default/poddisruptionbudgets" + dry, `{"metadata":{"name":"x"}}`, "cannot create resource"},
		{"another's event", http.MethodPatch, events + "/x" + dry, `{"message":"x"}`, "cannot patch resource"},
	})
	// The token of a Secret belongs to no pod, and therefore to no node.
	a.with(t, policed, "node", nil).try(t, []attempt{{"a Lease of no node", http.MethodPost, leases + dry, lease("node-8009", "n1", ""), "for its own node only"}})
}

func testDevice(t *testing.T, a apiServer) {
	for kind, refusal := range map[string]string{
		`,"type":"CharDevice"`: "", "": "no file of their node", `,"type":"DirectoryOrCreate"`: "no file of their node", `,"type":"FileOrCreate"`: "no file of their node",
	} {
		pod := `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"x","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}],
			"volumes":[{"name":"v","hostPath":{"path":"/dev/net/tun"` + kind + `}}]}}`
		a.try(t, []attempt{{"hostPath" + kind, http.MethodPost, podsPath + dry, pod, refusal}})
	}
}

func testRecords(t *testing.T, a apiServer) {
	for name, most := range map[string]int{"fabric": 256 << 10, "ipam": 768 << 10, "peering-x": 256 << 10, "gateway-x": 16 << 10, "gateway2-x": 16 << 10, "status-x": 1<<20 - 1} {
		record := func(bytes int) string {
			return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"record":%q}}`, name, strings.Repeat("x", bytes))
		}
		a.try(t, []attempt{
			{name, http.MethodPost, configMaps + dry, record(most * 3 / 4), ""},
			{name + " too long", http.MethodPost, configMaps + dry, record(most - 100), "more than a record of liqonet has"},
			{name + " of other letters", http.MethodPost, configMaps + dry, strings.ReplaceAll(record(most*3/8), "x\"}}", "x"+strings.Repeat("ä", most*5/16-40)+"\"}}"), "more than a record of liqonet has"},
		})
	}
	a.try(t, []attempt{{"foreign ConfigMap", http.MethodPost, configMaps + dry, `{"metadata":{"name":"x"},"data":{"a":"` + strings.Repeat("x", 300<<10) + `"}}`, ""}})
}

func testGatewayAmounts(t *testing.T, g apiServer) {
	long := strings.Repeat("x", 1<<20-10)
	wait.Until(t, "it may write its status", time.Minute, func() bool {
		code, _ := g.send(t, http.MethodPatch, configMaps+"/status-b"+dry, `{"data":{"record":"x"}}`)
		return code == http.StatusOK
	})
	g.try(t, []attempt{
		{"a location", http.MethodPatch, configMaps + "/gateway-b" + dry, `{"data":{"record":"` + long[:15<<10] + `"}}`, ""},
		{"a long location", http.MethodPatch, configMaps + "/gateway-b" + dry, `{"data":{"record":"` + long[:16<<10] + `"}}`, "more than a record"},
		{"a status", http.MethodPatch, configMaps + "/status-b" + dry, `{"data":{"record":"` + long[:1000<<10] + `"}}`, ""},
		{"a long status", http.MethodPatch, configMaps + "/status-b" + dry, `{"data":{"record":"` + long + `"}}`, "more than a record"},
		{"another gateway's number", http.MethodPatch, configMaps + "/gateway-b" + dry, `{"metadata":{"labels":{"liqonet.io/gateway":"2"}}}`, "changes no label"},
		{"no number", http.MethodPatch, configMaps + "/status-b" + dry, `{"metadata":{"labels":{"liqonet.io/gateway":null}}}`, "changes no label"},
		{"an event", http.MethodPost, events + dry, event("status-b.7", "ConfigMap", "status-b", ""), ""},
		{"an event of a long name", http.MethodPost, events + dry, event("status-b.777", "ConfigMap", "status-b", ""), "number of two digits"},
		{"an event of any name", http.MethodPost, events + dry, `{"metadata":{"generateName":"status-b."},` + event("", "ConfigMap", "status-b", "")[len(`{"metadata":{"name":""},`):], "number of two digits"},
		{"an event with annotations", http.MethodPost, events + dry, event("status-b.7", "ConfigMap", "status-b", garbage("annotations", 4000)), "and short"},
	})
}

func testNodeAmounts(t *testing.T, a apiServer) {
	n := a.as(t, "node", "n1")
	wait.Until(t, "it may create Leases", time.Minute, func() bool {
		code, _ := n.send(t, http.MethodPost, leases+dry, lease("node-8002", "n1", ""))
		return code == http.StatusCreated
	})
	long := strings.Repeat("x", 80<<10)
	const own = "/node-8002"
	n.try(t, []attempt{
		{"its Lease", http.MethodPost, leases, lease("node-8002", "n1", ""), ""},
		{"the lock", http.MethodPost, leases + dry, lease("liqoctl", "n1", ""), "the name of a number"},
		{"the lock of a run", http.MethodPatch, leases + "/liqoctl" + dry, `{"spec":{"holderIdentity":"n1"}}`, "the name of a number"},
		{"another name", http.MethodPost, leases + dry, lease("node-x", "n1", ""), "the name of a number"},
		{"an address", http.MethodPost, leases + dry, lease("node-10.80.0.3", "n1", ""), "the name of a number"},
		{"another form of a number", http.MethodPost, leases + dry, lease("node-08003", "n1", ""), "the name of a number"},
		{"a number too high", http.MethodPost, leases + dry, lease("node-10000001", "n1", ""), "the name of a number"},
		{"a Lease with a report", http.MethodPost, leases + dry, lease("node-8003", "n1", garbage("annotations", 4<<10)), "more than a node helper writes"},
		{"a Lease with managers", http.MethodPost, leases + dry, lease("node-8003", "n1", garbage("managedFields", 4<<10)), "more than a node helper writes"},
		{"a report", http.MethodPatch, leases + own + dry, `{"metadata":{"annotations":{"liqonet.io/node":"` + long[:64<<10] + `"}}}`, ""},
		{"a long report", http.MethodPatch, leases + own + dry, `{"metadata":{"annotations":{"liqonet.io/node":"` + long + `"}}}`, "more than a node helper writes"},
		{"a long report of managers", http.MethodPatch, leases + own + dry, `{"metadata":{` + garbage("managedFields", 80<<10)[1:] + `}}`, "more than a node helper writes"},
		{"without its label", http.MethodPatch, leases + own + dry, `{"metadata":{"labels":{"liqonet.io/node":null}}}`, "belongs to its own node"},
		{"without its component", http.MethodPatch, leases + own + dry, `{"metadata":{"labels":{"liqonet.io/component":null}}}`, "belongs to its own node"},
		{"an event", http.MethodPost, events + dry, event("n1.7", "Lease", "node-8002", ""), ""},
		{"a long event", http.MethodPost, events + dry, strings.Replace(event("n1.7", "Lease", "node-8002", ""), `"message":"m"`, `"message":"`+long[:1000]+`","count":100,
			"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","source":{"component":"liqonet-node","host":"`+long[:253]+`"},
			"reportingComponent":"liqonet-node","reportingInstance":"`+long[:128]+`"`, 1), ""},
		{"an event of another node", http.MethodPost, events + dry, event("n2.7", "Lease", "node-8002", ""), "number of two digits"},
		{"an event with annotations", http.MethodPost, events + dry, event("n1.7", "Lease", "node-8002", garbage("annotations", 4000)), "more than a node helper writes"},
		{"an event with managers", http.MethodPost, events + dry, event("n1.7", "Lease", "node-8002", strings.Replace(garbage("managedFields", 4000), "coordination.k8s.io/", "", 1)),
			"more than a node helper writes"},
	})
}

// testLeases: a node can create two Leases and no more.
func testLeases(t *testing.T, a apiServer) {
	n := a.as(t, "node", "n2")
	wait.Until(t, "it may create Leases", time.Minute, func() bool {
		code, _ := n.send(t, http.MethodPost, leases+dry, lease("node-8100", "n2", ""))
		return code == http.StatusCreated
	})
	const atOnce = 100
	for range 2 { // parallel requests may create more: the API server's cache of Leases is updated afterwards
		results := make(chan int)
		for i := range atOnce {
			go func() {
				code, _ := n.send(t, http.MethodPost, leases, lease(fmt.Sprintf("node-%d", 8200+i), "n2", ""))
				results <- code
			}()
		}
		taken := 0
		for range atOnce {
			if code := <-results; code == http.StatusCreated {
				taken++
			}
		}
		t.Logf("%d of %d Leases at once", taken, atOnce)
	}
	before, err := a.CoordinationV1().Leases(policed).List(t.Context(), metav1.ListOptions{LabelSelector: records.LabelNode + "=n2"})
	require.NoError(t, err)
	if held := len(before.Items); held < 2 || held == atOnce {
		t.Errorf("it holds %d Leases", held)
	}
	var tries []attempt
	for i := range 20 {
		tries = append(tries, attempt{"one more", http.MethodPost, leases, lease(fmt.Sprintf("node-%d", 8300+i), "n2", ""), "holds two Leases at most"})
	}
	n.try(t, tries)
	other := a.as(t, "node", "n3")
	other.try(t, []attempt{{"another node's", http.MethodPost, leases, lease("node-8401", "n3", ""), ""}})
	wait.Until(t, "it is seen", time.Minute, func() bool {
		code, _ := other.send(t, http.MethodPost, leases+dry, lease("node-8403", "n3", ""))
		return code == http.StatusForbidden
	})
	other.try(t, []attempt{{"when the internal CIDR narrows", http.MethodPost, leases + dry, lease("node-8502", "n3", ""), ""}})
}

// testReinstalled: Leases of an earlier installation, which the API server's cache of parameters keeps when a policy
// goes before them (kubernetes#130887), take no place in a new one.
func testReinstalled(t *testing.T, a apiServer) {
	n, now := a.as(t, "node", "n4"), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	n.try(t, []attempt{{"its first", http.MethodPost, leases, lease("node-8602", "n4", ""), ""}})
	oneMore := func() int {
		code, _ := n.send(t, http.MethodPost, leases+dry, lease("node-8604", "n4", ""))
		return code
	}
	wait.Until(t, "it is seen", time.Minute, func() bool { return oneMore() == http.StatusForbidden })
	policies := []string{policyName(policed, "claims"), policyName(policed, "leases")}
	for _, name := range policies {
		require.NoError(t, a.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, now))
		require.NoError(t, a.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(t.Context(), name, now))
	}
	wait.Until(t, "the policies have ended", time.Minute, func() bool { return oneMore() == http.StatusCreated })

	require.NoError(t, a.CoreV1().Pods(policed).DeleteCollection(t.Context(), now, metav1.ListOptions{}))
	require.NoError(t, a.CoreV1().Namespaces().Delete(t.Context(), policed, now))
	wait.Until(t, "the namespace is gone", time.Minute, func() bool {
		_, err := a.CoreV1().Namespaces().Get(t.Context(), policed, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	base, err := Base(BaseValues{Namespace: policed, Image: image, Policies: true})
	require.NoError(t, err)
	for _, o := range base { // other objects of the cluster are still there
		if name := o.GetName(); o.GetNamespace() == policed || name == policed || slices.Contains(policies, name) {
			a.create(t, o)
		}
	}
	n = a.as(t, "node", "n4")
	// An API server takes new policies all at once, so the one that is asked for here stands for the other.
	wait.Until(t, "the policies are in effect", time.Minute, func() bool {
		_, response := n.send(t, http.MethodPost, leases+dry, lease("node-8604", "n5", ""))
		return strings.Contains(response, "for its own node only")
	})
	n.try(t, []attempt{{"the first of the new installation", http.MethodPost, leases, lease("node-8604", "n4", ""), ""}})
}
