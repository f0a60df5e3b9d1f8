// Package control is the interface of a lab's supervisor for other processes: JSON over HTTP on a Unix socket.
package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"liqonet.io/liqonet/lab/node"
)

// Event is one line of a lab's start.
type Event struct {
	At    time.Duration `json:"at"` // since the supervisor started
	Text  string        `json:"text"`
	Last  bool          `json:"last,omitempty"`  // the start is over
	Error string        `json:"error,omitempty"` // of a last event: why the start failed
}

// Status describes a lab's clusters and files.
type Status struct {
	Name       string                `json:"name"`
	Tools      string                `json:"tools"`      // folder of the lab's programs
	Kubeconfig string                `json:"kubeconfig"` // file with one context a cluster
	Logs       string                `json:"logs"`       // folder of disks and logs
	Clusters   []Cluster             `json:"clusters"`
	Places     map[string]node.Place `json:"places"` // where programs can be run, by name
}

// Cluster is one cluster of a lab.
type Cluster struct {
	Name   string `json:"name"`
	Server string `json:"server"` // URL of the API server for clients on the host
	Nodes  []Node `json:"nodes"`
}

// Node is one node of a cluster.
type Node struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	PodCIDR string `json:"podCIDR"`
	State   State  `json:"state"`
}

// State is the state of a node.
type State string

// The states of a node.
const (
	Ready    State = "Ready"
	NotReady State = "NotReady"
	Stopped  State = "Stopped" // its processes do not run
)

// Paths of the interface.
const (
	EventsPath = "/events"
	StatusPath = "/status"
	ImagesPath = "/images"
	NodesPath  = "/clusters/{cluster}/nodes"
	PluginPath = "/clusters/{cluster}/plugin"
	KillPath   = "/nodes/{node}/kill"
	StartPath  = "/nodes/{node}/start"
)

// Client talks to the supervisor of one lab.
type Client struct {
	http *http.Client
}

// NewClient returns a client of the supervisor that listens on the socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Status requests the lab's status.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.do(ctx, http.MethodGet, StatusPath, nil, &s)
	return s, err
}

// Events calls f for every event of the lab's start, from the first, until the start is over.
func (c *Client) Events(ctx context.Context, f func(Event)) error {
	resp, err := c.send(ctx, http.MethodGet, EventsPath, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for events := json.NewDecoder(resp.Body); ; {
		var e Event
		if err := events.Decode(&e); err != nil {
			return fmt.Errorf("read events of the supervisor: %w", err)
		}
		f(e)
		switch {
		case e.Error != "":
			return errors.New(e.Error)
		case e.Last:
			return nil
		}
	}
}

// Load imports an image archive into every node, also into those that are added later.
func (c *Client) Load(ctx context.Context, archive io.Reader) error {
	return c.do(ctx, http.MethodPost, ImagesPath, archive, nil)
}

// AddNode adds a node to a cluster and returns when it is ready.
func (c *Client) AddNode(ctx context.Context, cluster string) (Node, error) {
	var n Node
	err := c.do(ctx, http.MethodPost, "/clusters/"+url.PathEscape(cluster)+"/nodes", nil, &n)
	return n, err
}

// UpgradePlugin replaces an earlier release of a cluster's network plugin by the current one.
func (c *Client) UpgradePlugin(ctx context.Context, cluster string) error {
	return c.do(ctx, http.MethodPost, "/clusters/"+url.PathEscape(cluster)+"/plugin", nil, nil)
}

// KillNode ends a node as a power failure would.
func (c *Client) KillNode(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, "/nodes/"+url.PathEscape(name)+"/kill", nil, nil)
}

// StartNode starts a node that was killed and returns when it is ready.
func (c *Client) StartNode(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, "/nodes/"+url.PathEscape(name)+"/start", nil, nil)
}

// do sends a request and decodes the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader, out any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read answer of the supervisor: %w", err)
	}
	return nil
}

// send returns the answer if its status is OK; the caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the supervisor: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer of the supervisor: %w", err)
	}
	return nil, errors.New(string(bytes.TrimSpace(text)))
}
