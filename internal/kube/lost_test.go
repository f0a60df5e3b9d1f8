package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLost(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("x"), false},
		{context.DeadlineExceeded, false},
		{apierrors.NewForbidden(pods, "x", nil), false},
		{apierrors.NewNotFound(pods, "x"), false},
		{apierrors.NewTooManyRequests("x", 1), true},
		{fmt.Errorf("read: %w", apierrors.NewServiceUnavailable("x")), true},
		{&url.Error{Op: "Get", URL: "http://x", Err: io.EOF}, true},
		{&url.Error{Op: "Get", URL: "http://x", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, true},
	} {
		if got := Lost(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
