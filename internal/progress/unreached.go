package progress

import (
	"errors"
	"net/url"
	"strings"

	"liqonet.io/liqonet/internal/kube"
)

// WithoutRequests returns the error without the requests that did not reach a cluster: net/http puts them, with their
// whole URLs, before the cause.
func WithoutRequests(err error) error {
	text := err.Error()
	for _, unsent := range unsentRequests(err) {
		text = strings.ReplaceAll(text, unsent.Error(), unsent.Err.Error())
	}
	return errors.New(text)
}

// unsentRequests returns the requests in an error's tree that did not reach a cluster.
func unsentRequests(err error) []*url.Error {
	switch e := err.(type) { //nolint:errorlint // walks the wrapped errors
	case *url.Error:
		if _, ok := errors.AsType[*kube.ReachError](e.Err); ok {
			return []*url.Error{e}
		}
	case interface{ Unwrap() error }:
		return unsentRequests(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*url.Error
		for _, cause := range e.Unwrap() {
			all = append(all, unsentRequests(cause)...)
		}
		return all
	}
	return nil
}
