package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"time"
)

// requestTimeout bounds one request to an API server that may be starting or stuck.
const requestTimeout = 30 * time.Second

// API is a client for the few requests that the lab itself sends to an API server.
type API struct {
	http *http.Client
}

// Dialer opens a connection to the cluster's API server.
type Dialer func(ctx context.Context) (net.Conn, error)

// API returns a client with the administrator's rights.
func (id *Identity) API(dial Dialer) (*API, error) {
	admin, err := tls.X509KeyPair(id.Admin.Certificate, id.Admin.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate of cluster %s's administrator: %w", id.Cluster.Name, err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(id.authority.X509())
	return &API{http: &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{admin}, RootCAs: trusted},
	}}}, nil
}

// Serving reports, as an error, why the API server does not serve yet.
func (a *API) Serving(ctx context.Context) error {
	return a.do(ctx, http.MethodGet, "/readyz", nil, nil)
}

// Version returns the API server's version, such as v1.36.3.
func (a *API) Version(ctx context.Context) (string, error) {
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := a.do(ctx, http.MethodGet, "/version", nil, &version); err != nil {
		return "", fmt.Errorf("ask for the API server's version: %w", err)
	}
	return version.GitVersion, nil
}

// nodeObject has the fields of a Node that matter to the lab.
type nodeObject struct {
	Metadata struct{ Name string }
	Spec     struct{ Taints []struct{ Key string } }
	Status   struct {
		Conditions []struct {
			Type, Status      string
			LastHeartbeatTime time.Time
		}
	}
}

// lifecycleTaints are on nodes that are not ready and, for a moment, on nodes that have become ready. They keep pods
// away.
var lifecycleTaints = []string{
	"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
	"node.cilium.io/agent-not-ready", // of Cilium's operator, until its agent runs
}

// avoided reports whether the control plane keeps pods away from the node.
func (n nodeObject) avoided() bool {
	for _, t := range n.Spec.Taints {
		if slices.Contains(lifecycleTaints, t.Key) {
			return true
		}
	}
	return false
}

// CreateNode creates the Node object before its kubelet runs: the controller manager keeps its pod CIDR, so routes and
// CNI configuration can be made before the node runs.
func (a *API) CreateNode(ctx context.Context, n Node) error {
	ranges := n.Cluster.NodePodCIDRs(n.Number)
	object := map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": n.Name()},
		"spec": map[string]any{"podCIDR": ranges[0], "podCIDRs": ranges},
	}
	if err := a.do(ctx, http.MethodPost, "/api/v1/nodes", object, nil); err != nil {
		return fmt.Errorf("create Node %s: %w", n.Name(), err)
	}
	return nil
}

// ReadyNodes returns the nodes that are Ready and get pods, each with the time of its kubelet's last report.
func (a *API) ReadyNodes(ctx context.Context) (map[string]time.Time, error) {
	var list struct {
		Items []nodeObject `json:"items"`
	}
	if err := a.do(ctx, http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	ready := make(map[string]time.Time, len(list.Items))
	for _, n := range list.Items {
		if n.avoided() {
			continue
		}
		for _, c := range n.Status.Conditions {
			if c.Type == "Ready" && c.Status == "True" {
				ready[n.Metadata.Name] = c.LastHeartbeatTime
			}
		}
	}
	return ready, nil
}

// do sends in, unless it is nil, as JSON and decodes the answer into out, unless that is nil.
func (a *API) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	url := fmt.Sprintf("https://%s%s", APIServer, path)
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// ProxyHealthy reports, as an error, why the node that dial reaches does not translate Services yet.
func ProxyHealthy(ctx context.Context, dial Dialer) error {
	return Healthy(ctx, dial, KubeProxyHealth)
}

// Healthy reports, as an error, that the health check at an address has no answer, or another one than OK.
func Healthy(ctx context.Context, dial Dialer, address netip.AddrPort) error {
	client := http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/healthz", address), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("health check at %s: %s", address, resp.Status)
	}
	return nil
}
