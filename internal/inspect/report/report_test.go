package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"path"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/connected"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// Planted secrets, each named by its place.
var (
	key          = bytes.Repeat([]byte{0xa7, 0x31}, 16)
	keyText      = base64.StdEncoding.EncodeToString(key)
	otherKey     = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x5c, 0x9e}, 16))
	token        = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
	privateLines = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIPLANTEDPEM\n-----END EC PRIVATE KEY-----"
)

// planted returns texts that must not be in an archive.
func planted() []string {
	return []string{
		keyText, hex.EncodeToString(key), string(key), otherKey, token, "PLANTEDPEM", "planted-in-env", "planted-in-annotation", "planted-in-template",
		"planted-in-configmap", "planted-in-node", "planted-in-args", "planted-in-url", "planted-in-event", "planted-bearer-token", "planted-opaque-value",
		"planted-in-json", "planted-in-camel-case", "planted-after-flag", "planted-in-foreign-object", "\x1b",
	}
}

// log is the output of a helper with problems, or of a compromised one.
var log = strings.Join([]string{
	`{"level":"INFO","msg":"kernel state","state":"+ link lqn-tunnel"}`,
	"private " + keyText, "hex private_key=" + hex.EncodeToString(key), "another " + otherKey, "jwt " + token, privateLines,
	"GET https://user:planted-in-url@registry.example/v2/", "Authorization: Bearer planted-bearer-token", "raw planted-opaque-value here",
	`{"token":"planted-in-json and more"}`, `escaped {\"password\":\"planted-in-json\"}`, "clientSecret: planted-in-camel-case", "exec: proxy --auth-token planted-after-flag", "\x1b[2J\x1b]0;owned\x07 \u202ereversed",
	"image sha256:" + strings.Repeat("ab", 32),
}, "\n")

func meta(name, component string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: name, Namespace: records.DefaultNamespace, Annotations: map[string]string{"example.com/note": "planted-in-annotation", "liqonet.io/digest": "kept-by-us"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}},
	}
	if component != "" {
		m.Labels = map[string]string{records.LabelComponent: component}
	}
	return m
}

func objects() []runtime.Object {
	pod := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "helper", Args: []string{"--password=planted-in-args", "--token", "helper"}, Env: []corev1.EnvVar{{Name: "SECRET_NUMBER", Value: "planted-in-env"}},
	}}}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"vault": "planted-in-template"}}, Spec: pod}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", Labels: map[string]string{"x": "planted-in-node"}, Annotations: map[string]string{"y": "planted-in-node"},
	}}
	return []runtime.Object{
		&corev1.Secret{ObjectMeta: meta("peering-b", records.ComponentPeering), Data: map[string][]byte{"privateKey": []byte(keyText), "x": []byte("planted-opaque-value")}},
		&corev1.Secret{ObjectMeta: meta("foreign", ""), Data: map[string][]byte{"x": []byte("planted-in-foreign-object")}},
		&corev1.ConfigMap{ObjectMeta: meta("peering-b", records.ComponentPeering), Data: map[string]string{records.DataKey: "version: 1\nkept: record", "mine": "planted-in-configmap"}},
		&corev1.ConfigMap{ObjectMeta: meta("foreign", ""), Data: map[string]string{records.DataKey: "planted-in-foreign-object"}},
		&appsv1.DaemonSet{ObjectMeta: meta("node", records.ComponentFabric), Spec: appsv1.DaemonSetSpec{Template: template}},
		&corev1.Pod{ObjectMeta: meta("node-x", records.ComponentFabric), Spec: pod, Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: "helper", RestartCount: 1}},
		}},
		&corev1.Event{ObjectMeta: meta("e", ""), Reason: "FailedCreate\nof another line", Message: "pulled with password=planted-in-event\nkept event"}, node,
	}
}

// filesOf reads an archive like tar(1), and checks its contents.
func filesOf(t *testing.T, r Result) map[string]string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.Write(&b))
	uncompressed, err := gzip.NewReader(&b)
	require.NoError(t, err)
	files := make(map[string]string)
	for in := tar.NewReader(uncompressed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		if header.Typeflag != tar.TypeReg || path.Clean(header.Name) != header.Name || !strings.HasPrefix(header.Name, "liqonet-report/") || header.Linkname != "" {
			t.Errorf("%q of type %c", header.Name, header.Typeflag)
		}
		text, err := io.ReadAll(in)
		require.NoError(t, err)
		files[strings.TrimPrefix(header.Name, "liqonet-report/")] = string(text)
	}
}

func logging(api *clienttesting.Fake, text string) {
	api.PrependReactor("get", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return a.GetSubresource() == "log", &runtime.Unknown{Raw: []byte(text)}, nil
	})
}

// TestSecretsStayHome plants secrets in all data that Run reads, and checks that the archive has the useful data and no
// secret.
func TestSecretsStayHome(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Context: "a", Objects: objects()})
	logging(&api.Fake, log)
	r, err := Run(t.Context(), Options{Cluster: c, Build: buildinfo.Info{Version: "v1"}}, progress.Quiet{})
	require.NoError(t, err)
	files := filesOf(t, r)
	for name, text := range files {
		for _, secret := range planted() {
			if strings.Contains(text, secret) || strings.Contains(name, secret) {
				t.Errorf("%s has %q:\n%s", name, secret, text)
			}
		}
		if strings.Contains(text, "managedFields") {
			t.Errorf("%s has managed fields", name)
		}
	}
	// Helpers create events. With a stolen token, no other event can be forged.
	if text := files["local/objects/events.txt"]; strings.Count(text, "\n") != 1 {
		t.Errorf("one event is %q", text)
	}
	for name, want := range map[string]string{
		"local/objects/configmap.yaml":          "kept: record",
		"local/objects/daemonset.yaml":          "kept-by-us",
		"local/objects/secret.yaml":             "privateKey",
		"local/objects/pod.yaml":                "SECRET_NUMBER",
		"local/objects/node.yaml":               "n1",
		"local/objects/events.txt":              "kept event",
		"local/logs/node-x/helper.log":          "kernel state",
		"local/logs/node-x/helper.previous.log": "sha256:" + strings.Repeat("ab", 32),
		"diagnosis.json":                        "LQ-OBJECTS-INTACT",
		"version.json":                          "v1",
		"README.txt":                            `local/ is cluster "a"`,
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s has no %q:\n%s", name, want, files[name])
		}
	}
	for _, a := range api.Actions() {
		if verb := a.GetVerb(); verb != "get" && verb != "list" && a.GetResource().Resource != "selfsubjectaccessreviews" {
			t.Errorf("%s %s", verb, a.GetResource().Resource)
		}
	}
}

// TestSlowLogs: the diagnosis is of the moment of the status, however long logs take, so that neither contradicts the
// other.
func TestSlowLogs(t *testing.T) {
	var objects []runtime.Object
	synctest.Test(t, func(t *testing.T) {
		running, _ := connected.New(t)
		all, err := inventory.Installed(t.Context(), running.Cluster)
		require.NoError(t, err)
		for _, o := range all {
			objects = append(objects, o.DeepCopyObject())
		}
		pods, err := kube.All[*corev1.Pod](t.Context(), running.Cluster, "")
		require.NoError(t, err)
		for _, pod := range pods {
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "helper"}}
			objects = append(objects, pod)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a, _ := fakecluster.Pair() // without controllers, which would wait for the logs
		for _, o := range objects {
			a.Add(t, o)
		}
		a.Fake.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(time.Minute)
			return false, nil, nil
		})
		began := time.Now()
		r, err := Run(t.Context(), Options{Cluster: a.Cluster}, progress.Quiet{})
		require.NoError(t, err)
		files := filesOf(t, r)
		if time.Since(began) < time.Minute || !strings.Contains(files["local/status.json"], `"state": "healthy"`) || strings.Contains(files["diagnosis.json"], "old") {
			t.Errorf("after %s: %s%s", time.Since(began), files["local/status.json"], files["diagnosis.json"])
		}
	})
}

// TestWithoutRights checks that unreadable objects are listed and all others are in the archive. A Secret's value is
// then recognised by its form alone.
func TestWithoutRights(t *testing.T) {
	c, api := fakecluster.NewAPIServer(fakecluster.Config{Context: "a", Objects: objects()})
	for _, resource := range []string{"secrets", "pods/log", "events"} {
		api.PrependReactor("*", strings.TrimSuffix(resource, "/log"), func(a clienttesting.Action) (bool, runtime.Object, error) {
			if strings.HasSuffix(resource, "/log") != (a.GetSubresource() == "log") {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no role"))
		})
	}
	r, err := Run(t.Context(), Options{Cluster: c}, progress.Quiet{})
	require.NoError(t, err)
	files, unread := filesOf(t, r), strings.Join(r.Unread, "\n")
	for _, want := range []string{"local: Secret objects: you are not allowed", "local: logs of fabric: ", "local: events: you are not allowed"} {
		if !strings.Contains(unread, want) || !strings.Contains(files["README.txt"], want) {
			t.Errorf("not named: %s\n%s", want, unread)
		}
	}
	if files["local/objects/configmap.yaml"] == "" || files["local/objects/secret.yaml"] != "" {
		t.Errorf("%v", r)
	}
}

// TestHostileNames checks that the archive has regular files below its folder only, with any pod names.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"../../etc/cron.d/x", "/etc/passwd", "..", "a\x00b", "C:\\x", "-rf", strings.Repeat("a/", 50)} {
		filesOf(t, Result{archive: archive{{"local/logs/" + name + "/" + name + ".log", "x"}}})
	}
}

// TestUnreached checks that the other cluster is reported if one does not answer.
func TestUnreached(t *testing.T) {
	a, _ := fakecluster.NewAPIServer(fakecluster.Config{Context: "a", Objects: objects()})
	b, api := fakecluster.NewAPIServer(fakecluster.Config{Context: "b"})
	api.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no route to host")
	})
	r, err := Run(t.Context(), Options{Cluster: a, Remote: b}, progress.Quiet{})
	if err != nil || filesOf(t, r)["local/objects/configmap.yaml"] == "" || !strings.Contains(strings.Join(r.Unread, "\n"), "no route to host") {
		t.Errorf("%v, %v", err, r.Unread)
	}
}

// TestLatest checks that the end of a long log is kept.
func TestLatest(t *testing.T) {
	long := strings.Repeat("a", 200<<10) + "the end"
	for most, want := range map[int]string{7: "the end", 9: "aathe end", 1 << 20: long} {
		if got, err := latest(iotest.HalfReader(strings.NewReader(long)), most); err != nil || got != want {
			t.Errorf("the last %d bytes: %d, %v", most, len(got), err)
		}
	}
}
