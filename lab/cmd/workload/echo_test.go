package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"liqonet.io/liqonet/lab/require"
)

// answers runs the client's exchange with a server and returns what the client prints.
func answers(t *testing.T, network, address string, size int) string {
	t.Helper()
	conn, err := net.Dial(network, address)
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), defaultTimeout)
	defer cancel()
	line, err := exchange(ctx, conn, network, pattern(size))
	if err != nil {
		t.Fatalf("%s, %d bytes: %v", network, size, err)
	}
	if want := "from=" + conn.LocalAddr().String() + "\n"; !strings.HasSuffix(string(line), want) {
		t.Errorf("%s, %d bytes: answer %q, want it to end in %q", network, size, line, want)
	}
	return string(line)
}

func TestEchoes(t *testing.T) {
	t.Setenv("NODE_NAME", "a-1")
	t.Setenv("POD_IP", "10.244.0.9")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer udp.Close()
	go func() { _ = serveTCP(tcp) }() // ends with an error: the listener is closed
	go func() { _ = serveUDP(udp) }()
	for _, size := range []int{0, 1, 64, 1400, 60000} {
		line := answers(t, "udp", udp.LocalAddr().String(), size)
		if want := "node=a-1 ip=10.244.0.9 "; !strings.Contains(line, want) {
			t.Errorf("answer %q, want %q in it", line, want)
		}
		answers(t, "tcp", tcp.Addr().String(), size)
	}
	answers(t, "tcp", tcp.Addr().String(), 16<<20) // more than all buffers hold
}

func TestExchangeNoticesDamage(t *testing.T) {
	for name, answer := range map[string]string{
		"no line":    "abc",
		"truncated":  "pod=x\nab",
		"other data": "pod=x\nabX",
		"empty":      "",
	} {
		client, server := net.Pipe()
		go func() {
			buf := make([]byte, 9)
			if _, err := server.Read(buf); err == nil {
				_, _ = server.Write([]byte(answer)) // the client sees what is missing
			}
			server.Close()
		}()
		if line, err := exchange(t.Context(), client, "udp", []byte("012345abc")); err == nil {
			t.Errorf("%s: accepted with line %q", name, line)
		}
	}
}

func TestPing(t *testing.T) {
	if err := ping(context.Background(), []string{"-count", "2", "-size", "1000", "127.0.0.1"}); err != nil {
		t.Error(err)
	}
}

func TestChecksum(t *testing.T) {
	// RFC 1071, section 3: the sum of these is ddf2.
	if got, want := checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}), ^uint16(0xddf2); got != want {
		t.Errorf("checksum %#x, want %#x", got, want)
	}
	if a, b := checksum([]byte{1, 2, 3}), checksum([]byte{1, 2, 3, 0}); a != b {
		t.Errorf("odd length: %#x, want %#x", a, b)
	}
}

func TestPatternHasNoPeriodOfAPacket(t *testing.T) {
	p := pattern(4096)
	if bytes.Equal(p[:1024], p[1024:2048]) {
		t.Error("a moved part would not show")
	}
}
