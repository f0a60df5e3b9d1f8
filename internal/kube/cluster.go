// Package kube gives the command line access to one Kubernetes cluster: its clients, the discovery of its addresses,
// permission checks, and applying, deleting and waiting for objects.
//
// In scope is all communication with an API server from outside the cluster. The meaning of the objects, which of them
// a peering needs, and their order are out of scope: see internal/peering and templates.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/records"
)

// FieldManager is the field manager of server-side apply.
const FieldManager = "liqoctl"

// Client-side limits: requests per second, and requests in a burst. With client-go's defaults of 5 and 10, the
// permission checks alone would take seconds. kubectl uses the same values: servers have limits of their own (API
// priority and fairness).
const (
	qps   = 50
	burst = 300
)

// reachTimeout limits the first requests, so that an API server that does not answer is not mistaken for a slow step.
const reachTimeout = 10 * time.Second

// Object is an object of the API with its metadata. It is an alias so that slices of it need no conversion between
// packages.
type Object = interface {
	metav1.Object
	runtime.Object
}

// Cluster is one Kubernetes cluster. Its methods may be called concurrently.
type Cluster struct {
	// Context is the kube context of the cluster; messages contain it.
	Context string
	// Entry is the name of the cluster in the kubeconfig; "": not known.
	Entry string
	// Namespace is liqonet's namespace in this cluster.
	Namespace string
	selected  Kubeconfig // by which Connect found the cluster
	Kube      kubernetes.Interface
	Dynamic   dynamic.Interface

	Locking LockOptions

	dry   *dryRun // nil: writes reach the API server
	lock  *lock   // of the run; nil: writes need no lock
	locks *Locks  // the locks that the first write acquires

	Host string // URL of the API server; "" in tests
	// Lookup resolves names; nil: the system's resolver.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options describe a cluster and its clients.
type Options struct {
	Context   string // kube context, for messages
	Entry     string // name of the cluster in the kubeconfig
	Namespace string // "" is records.DefaultNamespace
	Version   string // of this binary, for the user agent
	Shared    int    // operations that use the client at the same time; 0: one
}

// Connect builds the clients of the selected cluster. It reads the kubeconfig and sends no request.
func Connect(k Kubeconfig, version string) (*Cluster, error) {
	loader := k.Loader()
	o := Options{Context: k.Context, Namespace: k.Namespace, Version: version, Shared: k.Shared}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if o.Context == "" {
		o.Context = raw.CurrentContext
	}
	o.Entry = k.Cluster
	if chosen := raw.Contexts[o.Context]; chosen != nil && o.Entry == "" {
		o.Entry = chosen.Cluster
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig for context %q: %w", o.Context, err)
	}
	if k.Adapt != nil {
		k.Adapt(config)
	}
	if o.Context == "" && k.Cluster == "" && config.Host == clusterDefaultServer {
		cause := "there is none, or it has no contexts"
		if len(raw.Contexts) > 0 {
			cause = "it has no current context"
		}
		return nil, fmt.Errorf("read kubeconfig %s: %s", strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "), cause)
	}
	c, err := Open(config, o)
	if err == nil {
		c.selected = k
	}
	return c, err
}

// clusterDefaultServer is client-go's default if no kubeconfig selects a cluster and the process does not run in one
// (clientcmd.ClusterDefaults).
const clusterDefaultServer = "http://localhost:8080"

// Open builds the clients for a configuration, which it does not change. It sends no request.
func Open(config *rest.Config, o Options) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = float32(qps*max(o.Shared, 1)), burst*max(o.Shared, 1)
	config.UserAgent = FieldManager + "/" + o.Version
	// Warnings of API servers (such as deprecated fields) concern liqonet's own objects, not the user's.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &reachTransport{next: next, context: o.Context, host: config.Host}
	})
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for context %q: %w", o.Context, err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for context %q: %w", o.Context, err)
	}
	if o.Namespace == "" {
		o.Namespace = records.DefaultNamespace
	}
	return &Cluster{Context: o.Context, Entry: o.Entry, Namespace: o.Namespace, Kube: api, Dynamic: dyn, Host: config.Host}, nil
}

// Reach checks that the cluster answers within ten seconds; a failure is a *ReachError. An API server that denies the
// user its version counts as reachable.
func (c *Cluster) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errNoAnswer)
	defer cancel()
	_, err := discovery.ToServerVersionInterfaceWithContext(c.Kube.Discovery()).ServerVersionWithContext(ctx)
	unreached, is := errors.AsType[*ReachError](err)
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return c.readLock(ctx)
	case ctx.Err() != nil:
		err = context.Cause(ctx) // the request that was pending is not of interest
	case is:
		return unreached
	}
	return &ReachError{Context: c.Context, Host: c.Host, Err: err}
}

// errNoAnswer reports that an API server did not answer, or was overloaded, for reachTimeout.
var errNoAnswer = fmt.Errorf("no answer within %s", reachTimeout)

// ID identifies the cluster by the UID of namespace kube-system, which exists as long as the cluster.
func (c *Cluster) ID(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	ns, err := c.Kube.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("identify cluster %q: %w", c.Context, err)
	}
	if ns.UID == "" {
		return "", fmt.Errorf("identify cluster %q: namespace %s has no UID", c.Context, ns.Name)
	}
	return string(ns.UID), nil
}
