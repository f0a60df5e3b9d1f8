//go:build lab

package peering

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
	"liqonet.io/liqonet/internal/wireguard"
	"liqonet.io/liqonet/templates"
)

// refusal is a connect that must be rejected, and must not change the clusters.
type refusal struct {
	name    string
	args    []string // additional arguments of a connect that succeeds otherwise
	prepare func(t *testing.T, a pair)
	faults  map[string]fault // by cluster
	// kubeconfig, if not "", replaces the usual one; SERVER-a and SERVER-b are replaced by URLs.
	kubeconfig string
	code       int
	err, hint  string // contained in the lines with that prefix
}

// silent never responds.
func silent(http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
}

// busy responds with Too Many Requests.
func busy(http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests", http.StatusTooManyRequests)
	})
}

// goneAfter breaks every connection from the nth request on.
func goneAfter(n int64) fault {
	return func(server http.Handler) http.Handler {
		var requests atomic.Int64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if requests.Add(1) > n {
				panic(http.ErrAbortHandler)
			}
			server.ServeHTTP(w, r)
		})
	}
}

// refusals returns all connects that must be rejected.
func refusals() []refusal {
	return slices.Concat(unansweredRequests(), wrongClusters(), wrongFlags(), objectsInTheWay())
}

// unansweredRequests returns those with API servers that do not respond.
func unansweredRequests() []refusal {
	return []refusal{
		{
			name: "API server that cannot be reached", code: 1, err: `reach cluster "b"`, hint: "kubectl --context",
			kubeconfig: contextsOf("SERVER-a", "http://127.0.0.1:1"),
		},
		{
			name: "API server that never answers", code: 1, err: `reach cluster "b"`, hint: "kubectl --context",
			faults: map[string]fault{"b": silent}, args: []string{"--request-timeout", "8s"},
		},
		{
			name: "API server that never answers, and time runs out", code: 1, err: "--timeout", hint: "kubectl --context",
			faults: map[string]fault{"b": silent}, args: []string{"--timeout", "8s"},
		},
		{
			name: "API server that is too busy", code: 1, err: `reach cluster "b"`, hint: "kubectl --context",
			faults: map[string]fault{"b": busy}, args: []string{"--timeout", "8s"},
		},
		{
			name: "API server that is gone after the first step", code: 1, err: `cluster "b"`, hint: "again",
			faults: map[string]fault{"b": goneAfter(6)},
		},
	}
}

// wrongClusters returns those with the same cluster twice, or without permissions.
func wrongClusters() []refusal {
	return []refusal{
		{
			name: "the same cluster by two contexts", code: 2, err: "are the same cluster", hint: "--remote-context",
			kubeconfig: contextsOf("SERVER-a", "SERVER-a"),
		},
		{
			name: "no permissions", code: 1, err: "create daemonsets.apps node in namespace", hint: "auth can-i",
			kubeconfig: contextsOf("SERVER-a", "SERVER-b") + "users: [{name: b, user: {as: nobody}}]\n",
		},
	}
}

// wrongFlags returns those with flags that leave no addresses. Flags that make no sense are refused before any cluster
// is asked: TestScripts of package commands has them.
func wrongFlags() []refusal {
	return []refusal{
		{
			name: "a CIDR wider than any pool", code: 4, err: "no free addresses", hint: "--pool",
			args: []string{"--pod-cidr", "10.0.0.0/9", "--remote-pod-cidr", "10.0.0.0/9", "--pool", "172.16.0.0/12"},
		},
		{name: "no free range", code: 4, err: "no free addresses", hint: "--pool", args: []string{"--pool", "192.168.0.0/24"}},
	}
}

// objectsInTheWay returns those to clusters with objects that must not be overwritten.
func objectsInTheWay() []refusal {
	return []refusal{
		{
			name: "a peering of that name with another cluster", code: 1, err: `peering "b" with another cluster`, hint: "--remote-name",
			prepare: func(t *testing.T, a pair) { a.writeRecord(t, "a", "peering-b", otherPeering(t)) },
		},
		{
			name: "a damaged fabric", code: 1, err: "/fabric", hint: "left unchanged",
			prepare: func(t *testing.T, a pair) { a.writeRecord(t, "b", "fabric", "version: 1\nnonsense: true\n") },
		},
		{
			name: "damaged reservations", code: 1, err: "/ipam", hint: "left unchanged",
			prepare: func(t *testing.T, a pair) { a.writeRecord(t, "b", "ipam", "version: 1\nreservations: [") },
		},
		{
			name: "a damaged peering", code: 1, err: "/peering-b", hint: "left unchanged",
			prepare: func(t *testing.T, a pair) { a.writeRecord(t, "a", "peering-b", "version: 7\n") },
		},
		{
			name: "a namespace that is being deleted", code: 1, err: "is being deleted", hint: "--remote-namespace",
			prepare: func(t *testing.T, a pair) { a.terminate(t, "b") },
		},
	}
}

// contextsOf returns a kubeconfig with contexts a and b.
func contextsOf(a, b string) string {
	return fmt.Sprintf(`clusters: [{name: a, cluster: {server: %q}}, {name: b, cluster: {server: %q}}]
contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: b}}]
`, a, b)
}

// otherPeering returns a valid record of a peering "b" with a cluster that is not b.
func otherPeering(t *testing.T) string {
	t.Helper()
	key, err := wgtypes.GeneratePrivateKey()
	require.NoError(t, err)
	seen := records.Peer{
		ClusterID: "00000000-0000-0000-0000-000000000000", Name: "b",
		PodCIDRs:      []records.Mapping{{Real: prefix("10.244.0.0/16"), Seen: prefix("10.71.0.0/16")}},
		ExternalCIDRs: []records.Mapping{{Real: prefix("10.70.0.0/16"), Seen: prefix("10.81.0.0/16")}},
	}
	text, err := records.Encode(records.Peering{
		Version: records.SchemaVersion, Name: "b", Number: 1, Role: records.Server, Peer: seen,
		Local: records.Local{PodCIDRs: seen.PodCIDRs, ExternalCIDRs: seen.ExternalCIDRs},
		Gateways: []records.LocalGateway{{Tunnels: []records.Tunnel{{
			Driver: records.Driver{WireGuard: wireguard.Peer{PublicKey: key.PublicKey().String()}}, ListenPort: templates.TunnelPort,
		}}}},
		MTU: 1420,
	})
	require.NoError(t, err)
	return text
}

// TestLabRefused: connects with invalid input are rejected with one error, a hint and the right exit code, and no
// object of either cluster changes.
func TestLabRefused(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	a := pair{clusters: clusters, namespace: "none"}
	before := map[string]string{}
	// Controllers create their first objects during some seconds.
	wait.Until(t, "what is made or removed by controllers", wait.Timeout, func() bool {
		last := before
		before = a.objects(t)
		return cmp.Equal(last, before)
	})
	for i, r := range refusals() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.try(t, clusters, fmt.Sprintf("refused-%02d", i))
		})
	}
}

// TestLabNoNodeReady is separate, because it affects every run on the cluster.
func TestLabNoNodeReady(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	clusters[1].NotReady.Store(true)
	clusters[1].Heartbeat(t.Context(), t)
	refusal{code: 1, err: `cluster "b": no node is Ready`, hint: "get nodes"}.try(t, clusters, "refused-unready")
}

// TestLabConnectedTwice runs two connects of the same pair in parallel: both succeed, with one peering.
func TestLabConnectedTwice(t *testing.T) {
	clusters := fakecluster.OpenReal(t)
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			a := newPair(t, clusters, fmt.Sprintf("twice-%d", i))
			first, second := a.liqoctl.start(t, a.connectArgs()...), a.liqoctl.start(t, a.connectArgs()...)
			for _, r := range []*run{first, second} {
				if code := r.wait(t); code != 0 {
					t.Errorf("exit code %d\n%s", code, &r.stderr)
				}
			}
			a.connectedKeys(t)
			a.remove(t)
		})
	}
}

func (r refusal) try(t *testing.T, clusters []*fakecluster.Real, namespace string) {
	a := pair{clusters: clusters, namespace: namespace}
	if r.prepare != nil {
		r.prepare(t, a)
	}
	servers := map[string]string{}
	for _, s := range clusters {
		for _, early := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
			awaitControllers(t, s, early)
		}
		servers[s.Name] = interpose(t, s.Config, hideInstallations(namespace, r.faults[s.Name]))
	}
	program := newLiqoctl(t, servers)
	if r.kubeconfig != "" {
		program = program.with(t, strings.NewReplacer("SERVER-a", servers["a"], "SERVER-b", servers["b"]).Replace(r.kubeconfig))
	}
	before := a.objects(t)
	began := time.Now()
	run := program.start(t, append(a.connectArgs(), r.args...)...)
	code := run.wait(t)
	t.Logf("%s: exit code %d\n%s%s", time.Since(began).Round(10*time.Millisecond), code, &run.out, &run.stderr)
	if code != r.code || run.out.Len() > 0 {
		t.Errorf("exit code %d, want %d, and nothing on stdout", code, r.code)
	}
	for prefix, want := range map[string]string{"error: ": r.err, "hint: ": r.hint} {
		lines := linesOf(run.stderr.String(), prefix)
		if len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("lines %q: %q, want one with %q", prefix, lines, want)
		}
	}
	assert.Equal(t, "objects before and after", before, a.objects(t))
}

// linesOf returns the lines with a prefix.
func linesOf(text, prefix string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

// objects returns the objects of both clusters, without those of other tests.
func (a pair) objects(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, s := range a.clusters {
		others := func(namespace, name string) bool {
			return strings.Contains(namespace+" "+name, "refused-") && !strings.Contains(namespace+" "+name, a.namespace)
		}
		for name, text := range s.Objects(t, others) {
			all[s.Name+": "+name] = text
		}
	}
	return all
}

// cluster returns a cluster by name.
func (a pair) cluster(name string) *fakecluster.Real {
	for _, s := range a.clusters {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// writeRecord creates the namespace with a record in it.
func (a pair) writeRecord(t *testing.T, cluster, name, text string) {
	t.Helper()
	s := a.cluster(cluster)
	a.makeNamespace(t, s)
	object := recordMap(name, text)
	if name == records.IPAMName {
		object.Labels[records.LabelComponent] = records.ComponentIPAM
	}
	_, err := s.Kube.CoreV1().ConfigMaps(a.namespace).Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
}

func (a pair) makeNamespace(t *testing.T, s *fakecluster.Real) {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	_, err := s.Kube.CoreV1().Namespaces().Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	awaitControllers(t, s, a.namespace)
}

// awaitControllers waits until controllers have created their objects in a namespace.
func awaitControllers(t *testing.T, s *fakecluster.Real, namespace string) {
	t.Helper()
	wait.Until(t, "what is made by controllers", wait.Timeout, func() bool {
		_, noAccount := s.Kube.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{})
		_, noRoot := s.Kube.CoreV1().ConfigMaps(namespace).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return noAccount == nil && noRoot == nil
	})
}

// terminate creates the namespace and begins to delete it; a finalizer keeps it.
func (a pair) terminate(t *testing.T, cluster string) {
	t.Helper()
	s := a.cluster(cluster)
	a.makeNamespace(t, s)
	maps := s.Kube.CoreV1().ConfigMaps(a.namespace)
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"lab.liqonet.io/held"}}}
	_, err := maps.Create(t.Context(), held, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Kube.CoreV1().Namespaces().Delete(t.Context(), a.namespace, metav1.DeleteOptions{}))
	// Nothing else remains.
	wait.Until(t, "what is made or removed by controllers", wait.Timeout, func() bool {
		all, err := maps.List(t.Context(), metav1.ListOptions{})
		accounts, e := s.Kube.CoreV1().ServiceAccounts(a.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && e == nil && len(all.Items) == 1 && all.Items[0].DeletionTimestamp != nil && len(accounts.Items) == 0
	})
}
