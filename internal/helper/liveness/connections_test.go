package liveness

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// TestNewestConnectionsStay checks that the newest connections stay open, and that closed ones make room.
func TestNewestConnectionsStay(t *testing.T) {
	h := New(stuck)
	open := func() net.Conn {
		_, server := net.Pipe()
		h.count(server, http.StateNew)
		return server
	}
	closed := func(server net.Conn) bool { return server.SetDeadline(time.Time{}) != nil }
	var servers []net.Conn
	for range 2 * connectionsMost {
		servers = append(servers, open())
	}
	for i, s := range servers {
		if got, want := closed(s), i < connectionsMost; got != want {
			t.Errorf("connection %d of %d is closed: %t, want %t", i, len(servers), got, want)
		}
	}
	for range 2 * connectionsMost { // each makes room for the next
		s := open()
		_ = s.Close()
		h.count(s, http.StateClosed)
	}
	if len(h.open) != connectionsMost-1 || closed(servers[len(servers)-1]) {
		t.Errorf("%d are open, the last of the first ones is closed: %t", len(h.open), closed(servers[len(servers)-1]))
	}
}
