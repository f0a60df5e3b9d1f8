// Package translation is the service in a cluster that answers, over HTTPS, what package ipam/translate knows: how
// addresses are called between this cluster and its peers. It is for reflection logic in any language;
// docs/openapi.json describes it.
//
// It answers from the records of the cluster's peerings, as an informer keeps them, and from nothing else: what the
// records do not tell it refuses, with the reason. Who may ask is the API server's word (see gate). It writes
// nothing anywhere.
package translation

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/bounded"
	"liqonet.io/liqonet/internal/translation/authority"
)

// Bounds of a request. They keep a client that is slow, or wants to be, from holding what others need.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	writeTimeout  = 20 * time.Second // reviews by the API server included
	idleTimeout   = 2 * time.Minute
	closeTimeout  = 3 * time.Second // for requests on their way when the service ends
	maxHeader     = 16 << 10        // bytes: a token, and maxAddresses
	// maxConnections keeps what connections take, some 50 KiB each with their TLS, well below the pod's limit.
	maxConnections = 512
	maxBody        = 2 << 20 // bytes: an EndpointSlice has at most 1,000 endpoints, an object of the API 1.5 MiB
)

// Service is the translation service of one cluster.
type Service struct {
	Client    kubernetes.Interface
	Namespace string // of liqonet
	Address   string // where to listen, such as ":8443"
	Authority authority.Authority
	Log       *slog.Logger
}

// Run serves until ctx ends.
func (s Service) Run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", s.Address, err)
	}
	return s.serve(ctx, listener)
}

// serve serves at a listener, which it closes, until ctx ends.
func (s Service) serve(ctx context.Context, listener net.Listener) error {
	src := newSource(s.Client, s.Namespace, s.Log)
	h := newHandler(src.current, newGate(s.Client, s.Namespace), s.Log)
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		TLSConfig: &tls.Config{
			MinVersion:     tls.VersionTLS13,
			GetCertificate: authority.NewIssuer(s.Authority).Certificate,
		},
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug), // handshakes that scanners break off
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return src.run(ctx) })
	group.Go(func() error {
		if err := server.ServeTLS(bounded.Listener(listener, maxConnections), "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if err := server.Shutdown(rest); err != nil {
			return server.Close()
		}
		return nil
	})
	return group.Wait()
}
