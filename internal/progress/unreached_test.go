package progress

import (
	"errors"
	"fmt"
	"net/url"
	"testing"

	"liqonet.io/liqonet/internal/kube"
)

// TestWithoutRequests: the error of an unreachable cluster contains the cluster, and not the request.
func TestWithoutRequests(t *testing.T) {
	lost := &kube.ReachError{Context: "a", Host: "https://192.0.2.1", Err: errors.New("connection refused")}
	request := &url.Error{Op: "Get", URL: "https://192.0.2.1/api/v1/nodes", Err: lost}
	other := &url.Error{Op: "Get", URL: "https://registry.example.com", Err: errors.New("no such host")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("list nodes: %w", request), `list nodes: reach cluster "a" at https://192.0.2.1: connection refused`},
		{errors.Join(errors.New("x"), request), "x\n" + lost.Error()},
		{other, other.Error()},
	} {
		if got := WithoutRequests(c.err).Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
