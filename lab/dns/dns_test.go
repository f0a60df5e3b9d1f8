package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

func TestServer(t *testing.T) {
	var listen net.ListenConfig
	conn, err := listen.ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer conn.Close()
	var s Server
	want := netip.MustParseAddr("198.18.1.1")
	s.Set("a", map[string]netip.Addr{"gateway.a.lab.test": want})
	s.Set("b", nil)
	go func() { _ = s.Serve(conn) }()
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
	got, err := r.LookupNetIP(t.Context(), "ip", "Gateway.a.lab.test.")
	if err != nil || len(got) != 1 || got[0].Unmap() != want {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	_, err = r.LookupNetIP(t.Context(), "ip4", "other.a.lab.test.")
	if e, ok := errors.AsType[*net.DNSError](err); !ok || !e.IsNotFound {
		t.Errorf("another name: %v, want not found", err)
	}
}

func TestDamagedQuestions(t *testing.T) {
	for _, message := range []string{"", "x", "0123456789ab", "0123456789abcdefgh"} {
		if answer, err := new(Server).answer([]byte(message)); err == nil {
			t.Errorf("%q is answered by %q", message, answer)
		}
	}
}
