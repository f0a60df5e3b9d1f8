package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	"liqonet.io/liqonet/internal/testbed/netns"
)

// HealthAddress is the address of each helper's probes and metrics, in its namespace.
const HealthAddress = "127.0.0.1:6093"

// ErrUnavailable is the answer of a helper that is not ready.
var ErrUnavailable = errors.New("503 Service Unavailable")

// Ask returns a page, such as /readyz, of the helper in a namespace.
func Ask(ns netns.Handle, page string) (string, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return ns.Dial(ctx, network, netip.MustParseAddrPort(address))
		},
	}}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+HealthAddress+page, nil)
	if err != nil {
		return "", err
	}
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
	case answer.StatusCode == http.StatusServiceUnavailable:
		err = fmt.Errorf("the helper answers %s: %w", page, ErrUnavailable)
	case answer.StatusCode != http.StatusOK:
		err = fmt.Errorf("the helper answers %s: %s", page, answer.Status)
	}
	return string(text), err
}
