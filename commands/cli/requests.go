package cli

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// requestLog is a transport that logs requests.
type requestLog struct {
	next http.RoundTripper
	say  func(line string)
}

// logRequests adds the log to the client of a cluster, where the user wants one.
func (e *Env) logRequests(c *ClusterFlags) func(*rest.Config) {
	return func(config *rest.Config) {
		if e.Verbose {
			kubeconfig, _ := c.Config.Loader().RawConfig() // which was read before
			prefix := cmp.Or(c.Config.Context, kubeconfig.CurrentContext, c.Config.Cluster) + ": "
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return requestLog{next, func(line string) { e.Progress.Note(prefix + line) }}
			})
		}
	}
}

// RoundTrip implements http.RoundTripper.
func (l requestLog) RoundTrip(q *http.Request) (*http.Response, error) {
	start := time.Now()
	answer, err := l.next.RoundTrip(q)
	outcome := "no answer"
	if err == nil {
		outcome = http.StatusText(answer.StatusCode)
	}
	l.say(fmt.Sprintf("%s %s: %s (%s)", verb(q), resource(q.URL.Path), outcome, time.Since(start).Round(time.Millisecond)))
	return answer, err
}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper, which client-go uses to close idle connections.
func (l requestLog) WrappedRoundTripper() http.RoundTripper { return l.next }

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
