package status

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/require"
)

// silentTransport is a transport to an API server that accepts requests and never answers.
type silentTransport struct{}

func (silentTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	<-q.Context().Done()
	return nil, q.Context().Err()
}

// TestSilentServer checks that reads end too when an API server accepts connections and never answers.
func TestSilentServer(t *testing.T) {
	for name, look := range map[string]func(context.Context, *kube.Cluster) error{
		"status": func(ctx context.Context, c *kube.Cluster) error {
			_, err := Read(ctx, Options{Cluster: c})
			return err
		},
		"watch": func(ctx context.Context, c *kube.Cluster) error {
			return Watch(ctx, Options{Cluster: c}, func([]Peering) error { return nil }, func(error) {})
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			c, err := kube.Open(&rest.Config{Host: "https://192.0.2.1", Transport: silentTransport{}}, kube.Options{Context: "a"})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begin := time.Now()
			err = look(ctx, c)
			unreached, ok := errors.AsType[*kube.ReachError](err)
			if !ok || unreached.Context != "a" || unreached.Hint() == "" || time.Since(begin) >= time.Minute {
				t.Errorf("after %s: %v", time.Since(begin), err)
			}
		})
	}
}
