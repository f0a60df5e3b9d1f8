package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// testReport plants a secret in a Secret of liqonet's and, in several forms, where programs and people let secrets
// slip: the logs of a pod, events, annotations and records. None of them is in the file of `network report`.
func testReport(ctx context.Context, t *testing.T, u users) {
	l := u.admin.lab
	const secret = "planted?/valué of-e2e"
	forms := map[string]string{
		"plain": secret, "base64": base64.StdEncoding.EncodeToString([]byte(secret)), "for URLs": base64.RawURLEncoding.EncodeToString([]byte("u:" + secret)),
		"hexadecimal": hex.EncodeToString([]byte(secret)), "in a query": url.QueryEscape(secret), "in a path": url.PathEscape(secret),
		"in JSON": `planted?\/valu\u00e9 of-e2e`, "twice": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(secret)))),
	}
	var all []string
	for what, form := range forms {
		all = append(all, what+" kept-beside "+form+" kept-after")
	}
	text := strings.Join(all, " | ")
	image := strings.TrimSpace(kubectl(ctx, t, l, "a", "-n", "liqonet", "get", "daemonset", "node", "-o", "jsonpath={.spec.template.spec.containers[0].image}"))
	inLiqonet := func(fields map[string]any, name string) string {
		fields["metadata"] = map[string]any{
			"name": name, "namespace": "liqonet", "annotations": map[string]string{"example.com/note": text, "liqonet.io/note": text},
			"labels": map[string]string{"liqonet.io/component": "planted"},
		}
		object, err := json.Marshal(fields)
		require.NoError(t, err)
		return string(object)
	}
	objects := map[string]string{
		"secret":    inLiqonet(map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]string{"key": secret}}, "planted"),
		"configmap": inLiqonet(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]string{"record": text}}, "planted"),
		"event": inLiqonet(map[string]any{
			"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": "Planted", "message": text,
			"involvedObject": map[string]string{"kind": "ConfigMap", "name": "planted", "namespace": "liqonet"},
		}, "planted.1"),
		"pod": inLiqonet(map[string]any{"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
			"restartPolicy": "Never",
			"containers": []any{map[string]any{
				"name": "c", "image": image, "args": []string{"network", text},
				"securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []string{"ALL"}}},
			}},
		}}, "planted"),
	}
	folder := t.TempDir()
	for kind, object := range objects {
		require.NoError(t, os.WriteFile(filepath.Join(folder, kind+".json"), []byte(object), 0o600))
	}
	kubectl(ctx, t, l, "a", "apply", "-f", folder)
	t.Cleanup(func() {
		kubectl(context.WithoutCancel(ctx), t, l, "a", "-n", "liqonet", "delete", "--ignore-not-found", "--grace-period", "0", "secret/planted", "configmap/planted", "pod/planted", "event/planted.1")
	})
	var logs string
	await(ctx, t, func() bool {
		out, err := l.Kubectl(ctx, "a", "-n", "liqonet", "logs", "planted")
		logs = string(out)
		return err == nil && strings.Contains(logs, "kept-after")
	}, func() string { return "the pod's log: " + logs })
	archive := filepath.Join(t.TempDir(), "report.tar.gz")
	if out, said, code := u.admin.run(ctx, t, "network", "report", archive, "--context", "a", "--remote-context", "b"); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out, said)
	}
	files := untar(t, archive)
	for name, content := range files {
		for what, form := range forms {
			if strings.Contains(content, form) {
				t.Errorf("%s has the secret, %s", name, what)
			}
		}
		if strings.Contains(content, "planted?") {
			t.Errorf("%s has a part of the secret:\n%.2000s", name, content)
		}
	}
	for name, want := range map[string]string{
		"local/logs/planted/c.log": "kept-after", "local/objects/configmap.yaml": "kept-beside", "local/objects/events.txt": "kept-beside",
		"remote/objects/daemonset.yaml": "name: node", "diagnosis.json": "LQ-",
	} {
		if !strings.Contains(files["liqonet-report/"+name], want) {
			t.Errorf("%s has no %q:\n%.2000s", name, want, files["liqonet-report/"+name])
		}
	}
}

// untar reads a compressed archive.
func untar(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	uncompressed, err := gzip.NewReader(f)
	require.NoError(t, err)
	files := make(map[string]string)
	for in := tar.NewReader(uncompressed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", header.Name, err))
		}
		files[header.Name] = string(content)
	}
}
