package kube

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ReachError reports that an API server could not be reached. The error of every request of a Cluster that ends without
// a response contains it, unless the caller cancelled the request.
type ReachError struct {
	Context, Host string
	Err           error
}

func (e *ReachError) Error() string {
	return fmt.Sprintf("reach cluster %q at %s: %v", e.Context, e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *ReachError) Unwrap() error { return e.Err }

// Hint suggests the command that shows whether the cluster or liqoctl is at fault.
func (e *ReachError) Hint() string {
	if e.Context == "" { // the cluster was selected without a context, or is the one around this process
		return "try: kubectl version"
	}
	return fmt.Sprintf("try: kubectl --context %s version", ShellWord(e.Context))
}

// reachTransport adds the cluster to the errors of a transport.
type reachTransport struct {
	next          http.RoundTripper
	context, host string
}

// RoundTrip implements http.RoundTripper. It does not change the error of a connection that ended without a response:
// client-go compares this error to retry.
func (r *reachTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(q)
	if err == nil || q.Context().Err() != nil || utilnet.IsProbableEOF(err) {
		return answer, err
	}
	return answer, &ReachError{Context: r.context, Host: r.host, Err: err}
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, which client-go uses to close idle connections.
func (r *reachTransport) WrappedRoundTripper() http.RoundTripper { return r.next }
