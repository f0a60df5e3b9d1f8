package capture_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/lab/capture"
	"liqonet.io/liqonet/lab/require"
)

// recorded is a connection that keeps what is written.
type recorded struct {
	net.Conn
	sent []byte
}

func (r *recorded) Write(b []byte) (int, error) {
	r.sent = append(r.sent, b...)
	return r.Conn.Write(b)
}

// exchange returns what a client and a server send that exchange some data over TLS of a version.
func exchange(t *testing.T, version uint16) (client, server []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	require.NoError(t, err)
	near, far := net.Pipe()
	c, s := &recorded{Conn: near}, &recorded{Conn: far}
	of := func(config *tls.Config) *tls.Config {
		config.MinVersion, config.MaxVersion, config.SessionTicketsDisabled = version, version, true
		return config
	}
	done := make(chan error, 1)
	go func() {
		secure := tls.Server(s, of(&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}}}))
		_, err := io.CopyN(secure, secure, 100_000)
		done <- err
	}()
	secure := tls.Client(c, of(&tls.Config{InsecureSkipVerify: true}))
	go func() { _, _ = secure.Write(make([]byte, 100_000)) }() // the echo is complete, or the test fails
	_, err = io.ReadFull(secure, make([]byte, 100_000))
	require.NoError(t, err)
	require.NoError(t, <-done)
	return c.sent, s.sent
}

// read reads what was sent, in pieces.
func read(sent []byte, size int) (records int, err error) {
	var c capture.TLS13
	for piece := range slices.Chunk(sent, size) {
		if err := c.Read(piece); err != nil {
			return c.Records, err
		}
	}
	return c.Records, nil
}

func TestTLS13(t *testing.T) {
	client, server := exchange(t, tls.VersionTLS13)
	for name, sent := range map[string][]byte{"client": client, "server": server} {
		for _, size := range []int{1, 7, 1448, 1 << 20} {
			if records, err := read(sent, size); err != nil || records < 7 {
				t.Errorf("%s, %d bytes at a time: %d encrypted records, %v", name, size, records, err)
			}
		}
		if _, err := read(append(slices.Clone(sent), "hello, hello"...), 100); err == nil {
			t.Errorf("%s: text after TLS is not found", name)
		}
	}
	for name, sent := range map[string][]byte{
		"a request": []byte("GET / HTTP/1.1\r\n\r\n"), "WireGuard's data": append([]byte{4, 0, 0, 0}, make([]byte, 92)...),
		"encrypted records alone": {23, 3, 3, 0, 2, 1, 1}, "an alert": {21, 3, 3, 0, 2, 2, 40}, "an empty handshake": {22, 3, 3, 0, 1, 1},
		"a cut hello": {22, 3, 3, 0, 5, 1, 0, 0, 1, 0}, "a server's key": {22, 3, 3, 0, 5, 12, 0, 0, 1, 0},
	} {
		if _, err := read(sent, 100); err == nil {
			t.Errorf("%s is TLS 1.3", name)
		}
	}
	client, server = exchange(t, tls.VersionTLS12)
	for name, sent := range map[string][]byte{"client": client, "server": server} {
		if _, err := read(sent, 100); err == nil {
			t.Errorf("TLS 1.2 of a %s is TLS 1.3", name)
		}
	}
}

// FuzzTLS13 reads any bytes.
func FuzzTLS13(f *testing.F) {
	f.Add([]byte{22, 3, 3, 0, 5, 1, 0, 0, 1, 0})
	f.Add([]byte{22, 3, 1, 0, 10, 2, 0, 0, 6, 3, 3, 9, 9, 9, 9})
	f.Fuzz(func(_ *testing.T, sent []byte) { _, _ = read(sent, 3) })
}

// TestStreams: segments that are sent again, overlap, or are in no order become the bytes that were sent, also where
// sequence numbers wrap around.
func TestStreams(t *testing.T) {
	var got []byte
	s := capture.NewStreams(func(capture.Direction) func([]byte) error {
		got = nil
		return func(data []byte) error {
			got = append(got, data...)
			return nil
		}
	})
	first := ^uint32(4)
	packet := func(offset int, payload string) capture.Packet {
		return capture.Packet{
			Protocol: capture.TCP, Source: netip.MustParseAddr("172.31.1.11"), Target: netip.MustParseAddr("172.31.2.11"),
			SourcePort: 1, TargetPort: 2, Sequence: first + 1 + uint32(offset), Payload: []byte(payload),
		}
	}
	if err := s.Add(packet(0, "late")); err == nil {
		t.Error("data without a beginning is taken")
	}
	begin := packet(-1, "")
	begin.Begins = true
	for range 2 { // it may be sent twice, and the ports used again
		for _, p := range []capture.Packet{
			begin, packet(0, "abc"), begin, packet(8, "ijk"), packet(5, "fghi"), packet(0, "abcd"), packet(-1, "!"), packet(3, "de"), packet(11, "l"),
		} {
			require.NoError(t, s.Add(p))
		}
		if want := "abcdefghijkl"; string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
		first += 1000
		begin.Sequence = first
	}
}
