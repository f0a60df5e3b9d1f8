package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// requestTimer is a transport that reports requests and their latency.
type requestTimer struct {
	next http.RoundTripper
	done func(line string, took time.Duration)
}

// timeRequests adds the timer to the client of a cluster, where the user wants one.
func (e *Env) timeRequests(c *ClusterFlags) func(*rest.Config) {
	return func(config *rest.Config) {
		if !e.Verbose && !e.LogRequests {
			return
		}
		kubeconfig, _ := c.Config.Loader().RawConfig() // which was read before
		cluster := cmp.Or(c.Config.Context, kubeconfig.CurrentContext, c.Config.Cluster)
		done := func(line string, took time.Duration) {
			if e.Verbose {
				e.Progress.Request(cluster, took)
			}
			if e.LogRequests {
				e.Progress.Note(cluster + ": " + line)
			}
		}
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return requestTimer{next, done} })
	}
}

// RoundTrip implements http.RoundTripper.
func (l requestTimer) RoundTrip(q *http.Request) (*http.Response, error) {
	start := time.Now()
	answer, err := l.next.RoundTrip(q)
	outcome := "no answer"
	if err == nil {
		outcome = http.StatusText(answer.StatusCode)
	}
	took := time.Since(start)
	l.done(fmt.Sprintf("%s %s: %s (%s)", verb(q), resource(q.URL.Path), outcome, took.Round(time.Millisecond)), took)
	return answer, err
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, which client-go uses to close idle connections.
func (l requestTimer) WrappedRoundTripper() http.RoundTripper { return l.next }

// verb returns the RBAC verb of a request.
func verb(q *http.Request) string {
	switch {
	case q.Method == http.MethodPost:
		return "create"
	case q.Method == http.MethodPut:
		return "update"
	case q.URL.Query().Has("watch"):
		return "watch"
	}
	return strings.ToLower(q.Method)
}

// resource returns the resource of a request in kubectl's form: "configmaps/ipam in liqonet".
func resource(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		return strings.Join(parts[2:], "/") + " in " + parts[1]
	}
	return strings.Join(parts, "/")
}
