package probe

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// testToken is the token of servers in tests.
var testToken = rand.Text()

// serve runs a server of node b-1 until the test ends.
func serve(t *testing.T) netip.AddrPort {
	t.Helper()
	return untilEnd(t, Server{Node: "b-1", Token: testToken}.Serve)
}

func TestAsk(t *testing.T) {
	at := serve(t)
	every := []Check{TCP, UDP, Fragments, FullSize, Connection}
	got := Inquiry{MTU: 1380, Hold: time.Second, Targets: []Target{
		{Name: "b-1", Address: at, Node: "b-1", Token: testToken, Checks: every},
		{Name: "b-2", Address: at, Node: "b-2", Token: testToken, Checks: []Check{TCP}},
		{Name: "b-3", Address: at, Token: testToken, Checks: []Check{Oversize, "newer"}},
	}}.Ask(t.Context())
	home := netip.MustParseAddr("127.0.0.1")
	want := []Result{
		{Target: "b-1", Source: home},
		{Target: "b-2", Source: home, Failed: map[Check]string{TCP: "node b-1 answered"}},
		{Target: "b-3", Failed: map[Check]string{Oversize: "a packet of 1381 bytes crossed"}, Skipped: map[Check]string{"newer": "not known to this version"}},
	}
	options := cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Result{}, "Gap")}
	assert.Equal(t, "results", want, got, options)
	if got[0].Gap <= 0 {
		t.Error("no gap between answers on the open connection")
	}
}

// A packet larger than the link's MTU is rejected immediately.
func TestOversizeIsRefused(t *testing.T) {
	target := Target{Address: serve(t), Token: testToken}
	if err := target.askOversize(t.Context(), 65536); err != nil { // the loopback device's MTU
		t.Error(err)
	}
}

// A server that answers UDP must not send more than it receives.
func TestAnswersAreNoLongerThanRequests(t *testing.T) {
	conn, err := net.Dial("udp4", serve(t).String())
	require.NoError(t, err)
	defer conn.Close()
	buf, message := make([]byte, 1<<16), Target{Token: testToken}.datagram(small)
	for range 100 { // until the server listens
		require.NoError(t, conn.SetDeadline(time.Now().Add(100*time.Millisecond)))
		_, err1 := conn.Write([]byte(testToken))
		_, err2 := conn.Write(message)
		if n, err := conn.Read(buf); err1 == nil && err2 == nil && err == nil {
			if _, err := (Target{}).judge(buf[:n], message); err != nil || n > small {
				t.Errorf("%d bytes, %v: an answer to a short question?", n, err)
			}
			return
		}
	}
	t.Error("no answer")
}

// TestServerNeedsItsToken checks that a client without the token gets no byte, over TCP and UDP, that memory is
// allocated for received bytes only and not for an announced length, and that idle connections delay others no longer
// than a meter's timeout.
func TestServerNeedsItsToken(t *testing.T) {
	at := serve(t)
	known := Target{Address: at, Token: testToken}
	_, err := known.askTCP(t.Context())
	require.NoError(t, err)
	unknown := Target{Address: at, Token: rand.Text()}
	for _, network := range []string{"tcp4", "udp4"} {
		for _, token := range []string{"", unknown.Token, testToken[:tokenSize-1]} {
			conn, err := net.Dial(network, at.String())
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(100*time.Millisecond)))
			_, err = conn.Write(append([]byte(token), binary.BigEndian.AppendUint32(nil, 0)...))
			require.NoError(t, err)
			if _, err := conn.Write(pattern(small)); network == "udp4" && err != nil {
				t.Fatal(err)
			}
			if answer, _ := io.ReadAll(conn); len(answer) > 0 {
				t.Errorf("%s: an unknown client with %q got %q", network, token, answer)
			}
		}
	}
	announced, far := net.Pipe()
	defer announced.Close()
	ended := make(chan error, 1)
	go func() { ended <- copyFrame(io.Discard, far) }()
	_, err = announced.Write(binary.BigEndian.AppendUint32(nil, maxFrame+1))
	require.NoError(t, err)
	if err := <-ended; err == nil {
		t.Error("a message that no probe sends is taken")
	}
	for range 2 * meterConns { // idle ones
		conn, err := net.Dial("tcp4", at.String())
		require.NoError(t, err)
		defer conn.Close()
	}
	if _, err := known.askTCP(t.Context()); err != nil {
		t.Errorf("beside idle connections: %v", err)
	}
	if err := (Server{}).Serve(t.Context(), at); err == nil {
		t.Error("a server without a token")
	}
}

// Servers do not answer each other: a forged request would cause an endless exchange.
func TestServersDoNotAnswerServers(t *testing.T) {
	at := serve(t)
	if _, err := (Target{Address: at, Token: testToken}).askUDP(t.Context(), small, 0); err != nil { // it listens
		t.Fatal(err)
	}
	twin, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port())))
	require.NoError(t, err)
	defer twin.Close()
	_, err = twin.WriteToUDPAddrPort(Target{Token: testToken}.datagram(small), at)
	require.NoError(t, err)
	// An answer to the twin would have arrived before.
	_, err = (Target{Address: at, Token: testToken}).askUDP(t.Context(), small, 0)
	require.NoError(t, err)
	require.NoError(t, twin.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	if n, err := twin.Read(make([]byte, 1<<16)); err == nil {
		t.Errorf("a server's port got an answer of %d bytes", n)
	}
}

func TestFailures(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	target := Target{Address: netip.MustParseAddrPort("127.0.0.1:1")}
	if _, err := target.askTCP(ctx); err == nil {
		t.Error("a port at which nobody listens answered")
	}
	if _, err := target.hold(ctx, 300*time.Millisecond); err == nil {
		t.Error("a connection that cannot be opened was held")
	}
}

// serveSome answers that many messages on each connection in turn, and all of them on later ones.
func serveSome(t *testing.T, answers ...int) Target {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 0; ; i++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for n := 0; i >= len(answers) || n < answers[i]; n++ {
					if (Server{Node: "b-1"}).answerFrame(conn) != nil {
						return
					}
				}
			}()
		}
	}()
	return Target{Address: netip.MustParseAddrPort(l.Addr().String())}
}

// A connection is held from the first one that works: a Service may be programmed late.
func TestHold(t *testing.T) {
	t.Parallel()
	if _, err := serveSome(t, 0, 0).hold(t.Context(), 300*time.Millisecond); err != nil {
		t.Errorf("a server that begins late: %v", err)
	}
	_, err := serveSome(t, 1, 2).hold(t.Context(), time.Second)
	assert.ErrorContains(t, "a connection that breaks", err, "broken 1 times, first after 0s: ")
}

// A report fits into a termination message, regardless of the number of failures.
func TestReportFits(t *testing.T) {
	var results []Result
	for i := range MaxTargets + 2 {
		failed := map[Check]string{}
		for _, c := range []Check{TCP, UDP, Ping, FullSize, Oversize, Fragments, Connection} {
			failed[c] = strings.Repeat("a long reason ", 50)
		}
		results = append(results, Result{
			Target: fmt.Sprintf("ip-10-0-123-%d.eu-central-1.compute.internal", i), Source: netip.MustParseAddr("10.255.255.255"), Failed: failed, Gap: time.Hour,
		})
	}
	text, err := Encode(results)
	if err != nil || len(text) > maxReport {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	got, err := Decode(text)
	if err != nil || len(got) != len(results) || !slices.EqualFunc(got, results, func(a, b Result) bool { return len(a.Failed) == len(b.Failed) }) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Decode("panic: "); err == nil {
		t.Error("what is no report was taken")
	}
}

// An answer to another message, or from another node, does not pass a check.
func TestJudge(t *testing.T) {
	target := Target{Node: "b-1"}
	for reply, want := range map[string]string{
		`{"node":"b-1","from":"10.72.0.5","sum":"` + sum(pattern(small)) + `"}`: "<nil>",
		`{"node":"b-1","from":"10.72.0.5","sum":"` + sum(pattern(large)) + `"}`: "what arrived is not what was sent",
		`{"node":"b-2","from":"10.72.0.5","sum":"` + sum(pattern(small)) + `"}`: "node b-2 answered",
		`HTTP/1.1 400`: "an answer that is not a server's: ",
	} {
		source, err := target.judge([]byte(reply), pattern(small))
		if !strings.HasPrefix(fmt.Sprint(err), want) || err != nil && !permanent(err) {
			t.Errorf("%s: %v, want %s", reply, err, want)
		}
		if strings.HasPrefix(reply, "{") && source != netip.MustParseAddr("10.72.0.5") {
			t.Errorf("%s: source %s", reply, source)
		}
	}
}
