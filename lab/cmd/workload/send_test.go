package main

import (
	"net"
	"testing"
	"time"

	"liqonet.io/liqonet/lab/require"
)

// TestSend counts what comes of two rounds: each time a datagram by the same socket, and one by another.
func TestSend(t *testing.T) {
	listener, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	require.NoError(t, send(t.Context(), []string{"-every", "1ms", "-rounds", "2", "hello", listener.LocalAddr().String()}))
	require.NoError(t, listener.SetReadDeadline(time.Now().Add(5*time.Second)))
	from := map[string]int{}
	buf := make([]byte, maxDatagram)
	for range 4 {
		n, sender, err := listener.ReadFrom(buf)
		require.NoError(t, err)
		from[sender.String()]++
		if n != 400 || string(buf[395:n]) != "hello" {
			t.Errorf("a datagram of %d bytes: %q", n, buf[:n])
		}
	}
	if len(from) < 2 {
		t.Errorf("datagrams by sender: %v", from)
	}
	for _, args := range [][]string{{"hello"}, {"", "127.0.0.1:7"}, {"-every", "0s", "hello", "127.0.0.1:7"}} {
		if err := send(t.Context(), args); err == nil {
			t.Errorf("send %v is accepted", args)
		}
	}
}
