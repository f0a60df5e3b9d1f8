// Package cluster is one Kubernetes cluster as the command line sees it: its clients, what can be discovered
// of its addresses, whether the user may do what is planned, and objects applied, deleted and waited for.
//
// In scope is everything that speaks to an API server from outside. What the objects mean, which of them a
// peering needs and in which order is not: see internal/peering and templates.
package cluster

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

// FieldManager is the owner of the fields that Apply writes.
const FieldManager = "liqoctl"

// Client-side limits of requests a second and of requests at once. client-go's own 5 and 10 would make the
// permission checks alone take seconds. kubectl has the same: servers limit for themselves (API priority and
// fairness).
const (
	qps   = 50
	burst = 300
)

// reachTimeout bounds the first requests: so that an API server that does not answer is not taken for a slow step.
const reachTimeout = 10 * time.Second

// Object is an object of the API with its metadata. It is an alias so that slices of it need no conversion
// between packages.
type Object = interface {
	metav1.Object
	runtime.Object
}

// Cluster is one Kubernetes cluster. Its methods may be called concurrently.
type Cluster struct {
	// Context is the kube context by which the user knows the cluster; messages bear it.
	Context string
	// Namespace is the one of liqonet's in this cluster.
	Namespace string
	Kube      kubernetes.Interface
	Dynamic   dynamic.Interface

	Locking LockOptions

	dry   *dryRun // nil: what is written is written
	lock  *lock   // of the run; nil: writes need none
	locks *Locks  // those that its first write takes

	host string // URL of the API server; "" in tests
	// lookup resolves names; nil: as the system does.
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Options say how a cluster is called and spoken to.
type Options struct {
	Context   string // kube context, for messages
	Namespace string // "" is records.DefaultNamespace
	Version   string // of this binary, for the user agent
}

// Connect builds the clients of the cluster that is chosen. It reads the kubeconfig and sends nothing.
func Connect(k Kubeconfig, version string) (*Cluster, error) {
	loader := k.Loader()
	o := Options{Context: k.Context, Namespace: k.Namespace, Version: version}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if o.Context == "" {
		o.Context = raw.CurrentContext
	}
	config, err := k.config()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig for context %q: %w", o.Context, err)
	}
	if o.Context == "" && k.Cluster == "" && config.Host == nobodysServer {
		cause := errNoContext
		if len(raw.Contexts) > 0 {
			cause = errNoCurrentContext
		}
		return nil, fmt.Errorf("read kubeconfig %s: %w", strings.Join(loader.ConfigAccess().GetLoadingPrecedence(), ", "), cause)
	}
	return Open(config, o)
}

// nobodysServer is what client-go takes where no kubeconfig says which cluster is meant, and the process runs in
// none (clientcmd.ClusterDefaults).
const nobodysServer = "http://localhost:8080"

var (
	errNoContext        = errors.New("there is none, or it has no contexts")
	errNoCurrentContext = errors.New("it has no current context")
)

// Open builds the clients for a configuration, which it does not change. It sends nothing.
func Open(config *rest.Config, o Options) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = qps, burst
	config.UserAgent = FieldManager + "/" + o.Version
	// What API servers warn of (deprecated fields, say) is about liqonet's own objects, not the user's.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &reaching{next: next, context: o.Context, host: config.Host}
	})
	kube, err := kubernetes.NewForConfig(config)
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
	return &Cluster{Context: o.Context, Namespace: o.Namespace, Kube: kube, Dynamic: dyn, host: config.Host}, nil
}

// Reach finds out whether the cluster answers, within ten seconds; a failure is a *ReachError. A server that does not
// tell everybody its version answers too.
func (c *Cluster) Reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errNoAnswer)
	defer cancel()
	_, err := discovery.ToServerVersionInterfaceWithContext(c.Kube.Discovery()).ServerVersionWithContext(ctx)
	unreached, is := errors.AsType[*ReachError](err)
	switch {
	case err == nil, apierrors.IsForbidden(err):
		return c.readLock(ctx)
	case ctx.Err() != nil:
		err = context.Cause(ctx) // which request was on its way, or waited because the server was busy, is no news
	case is:
		return unreached
	}
	return &ReachError{Context: c.Context, Host: c.host, Err: err}
}

// errNoAnswer says that an API server was silent, or too busy, for all of reachTimeout.
var errNoAnswer = fmt.Errorf("no answer within %s", reachTimeout)

// ID identifies the cluster by the UID of namespace kube-system, which lives as long
// as the cluster.
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

// value returns what p points to; the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
