//go:build linux

package gateway

import (
	"testing"

	"liqonet.io/liqonet/internal/testbed/netns"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestSendersAfterError: a connection with an error is replaced.
func TestSendersAfterError(t *testing.T) {
	netns.New(t).Inside(func() error {
		var s senders
		defer s.close()
		_, err := s.of(51840)
		require.NoError(t, err)
		require.NoError(t, s.conn.Close())
		if _, err := s.of(51840); err == nil {
			t.Error("a closed connection: no error")
		}
		_, err = s.of(51840)
		return err
	})
}
