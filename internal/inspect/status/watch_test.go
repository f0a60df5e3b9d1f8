package status

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"liqonet.io/liqonet/internal/kube"
)

func TestUnanswered(t *testing.T) {
	reach := func(err error) error { return &kube.ReachError{Context: "a", Err: err} }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{reach(errors.New("no answer within 10s")), true},
		{reach(errors.New("net/http: TLS handshake timeout")), true},
		{fmt.Errorf("list nodes: %w", context.DeadlineExceeded), true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{reach(apierrors.NewUnauthorized("expired")), false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", nil), false},
		{errors.New("no space left"), false},
	} {
		if got := unanswered(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
