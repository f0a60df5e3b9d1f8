package cluster

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// ReachError says that an API server did not answer as one. Every request of a Cluster that ends without an answer
// has it in its error, unless the caller has ended it.
type ReachError struct {
	Context, Host string
	Err           error
}

func (e *ReachError) Error() string {
	return fmt.Sprintf("reach cluster %q at %s: %v", e.Context, e.Host, e.Err)
}

// Unwrap returns the cause.
func (e *ReachError) Unwrap() error { return e.Err }

// Hint names the command that shows whether the cluster is at fault or liqoctl.
func (e *ReachError) Hint() string {
	if e.Context == "" { // a cluster that flags name without a context, or the one around this process
		return "try: kubectl version"
	}
	return fmt.Sprintf("try: kubectl --context %s version", ShellWord(e.Context))
}

// reaching is a transport whose errors say which cluster was not reached.
type reaching struct {
	next          http.RoundTripper
	context, host string
}

// RoundTrip implements http.RoundTripper. An end of the connection in place of an answer stays as it is: client-go
// compares such an error, to ask again.
func (r *reaching) RoundTrip(q *http.Request) (*http.Response, error) {
	answer, err := r.next.RoundTrip(q)
	if err == nil || q.Context().Err() != nil || utilnet.IsProbableEOF(err) {
		return answer, err
	}
	return answer, &ReachError{Context: r.context, Host: r.host, Err: err}
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, by which client-go closes idle connections.
func (r *reaching) WrappedRoundTripper() http.RoundTripper { return r.next }
