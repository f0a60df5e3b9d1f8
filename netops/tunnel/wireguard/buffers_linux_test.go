package wireguard

import (
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/tun"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/wait"
)

// TestBuffersAreLimited floods a gateway whose writes to its link are blocked: queued packets take a limited amount of
// memory, and afterwards traffic continues.
func TestBuffersAreLimited(t *testing.T) {
	near, far := newEnds(t)
	far.join(t, near, waits)
	near.join(t, far, initiates)
	far.await(t, 1, near)
	before := heap()
	far.stall.Lock()
	const most = 2 * allBuffers << 16 // both devices are in this process
	for range 100 {
		near.reads <- struct{}{}
		if grown := heap() - before; grown > most {
			t.Errorf("packets that wait take %d MiB, want %d at most", grown>>20, most>>20)
			break
		}
	}
	far.stall.Unlock()
	far.await(t, far.written.Load()+allBuffers, near)
}

// TestHandshakeOfAFullDevice sends more packets than a device can queue while no peer answers: the session starts when
// the peer starts it, or when the device is renewed, as gateways do with a silent tunnel. The full device cannot start
// it itself: the loop that reads the link, and that would repeat a handshake, waits for buffers.
func TestHandshakeOfAFullDevice(t *testing.T) {
	for who, starts := range map[string]func(t *testing.T, near, far *end){
		"peer": func(t *testing.T, near, far *end) { far.join(t, near, initiates) },
		"renewal": func(t *testing.T, near, far *end) {
			far.join(t, near, waits)
			key := far.key.PublicKey()
			require.NoError(t, near.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{{PublicKey: key, Remove: true}}}))
			near.join(t, far, initiates)
		},
	} {
		t.Run(who, func(t *testing.T) {
			near, far := newEnds(t)
			silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
			require.NoError(t, err)
			t.Cleanup(func() { _ = silent.Close() })
			near.joinAt(t, far, silent.LocalAddr().(*net.UDPAddr), waits)
			for range packetBuffers / batch { // the last one waits for buffers
				near.reads <- struct{}{}
			}
			starts(t, near, far)
			far.await(t, allBuffers, near)
		})
	}
}

// end is a wireguard-go device on a fake link.
type end struct {
	*userspaceEngine
	*fakeLink
	key wgtypes.Key
}

// newEnds returns two ends with their sockets in the namespace of the test.
func newEnds(t *testing.T) (near, far *end) {
	var ends []*end
	for range 2 {
		link := &fakeLink{reads: make(chan struct{}), closed: make(chan struct{})}
		e, err := newUserspaceDevice(newTUNDevice(link, 1420), testLog(t))
		require.NoError(t, err)
		t.Cleanup(func() { _ = e.close() })
		made := &end{userspaceEngine: e, fakeLink: link, key: newKey(t)}
		require.NoError(t, e.configure(wgtypes.Config{PrivateKey: &made.key}))
		require.NoError(t, e.start(1420))
		ends = append(ends, made)
	}
	return ends[0], ends[1]
}

// Keepalive intervals. With a persistent keepalive an end starts with a handshake, otherwise with its first packet. If
// both do, their handshakes can cross.
const (
	waits     time.Duration = 0
	initiates               = time.Second
)

// join configures the other end as the peer of this one.
func (e *end) join(t *testing.T, other *end, keepAlive time.Duration) {
	d, err := other.read()
	require.NoError(t, err)
	e.joinAt(t, other, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: d.ListenPort}, keepAlive)
}

// joinAt is join with another endpoint than the other end's.
func (e *end) joinAt(t *testing.T, other *end, endpoint *net.UDPAddr, keepAlive time.Duration) {
	require.NoError(t, e.configure(wgtypes.Config{Peers: []wgtypes.PeerConfig{{
		PublicKey: other.key.PublicKey(), PersistentKeepaliveInterval: &keepAlive, Endpoint: endpoint,
		AllowedIPs: []net.IPNet{{IP: net.IPv4(10, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}},
	}}}))
}

// await sends packets from another end until this one has received count.
func (e *end) await(t *testing.T, count int64, from *end) {
	t.Helper()
	wait.Until(t, "packets arrive", patience, func() bool {
		select {
		case from.reads <- struct{}{}:
		default:
		}
		return e.written.Load() >= count
	})
}

// batch is the number of packets that a read returns.
const batch = conn.IdealBatchSize

// fakeLink is a TUN that returns a batch of small packets for each value in reads, and counts written packets.
type fakeLink struct {
	tun.Device
	reads   chan struct{}
	closed  chan struct{}
	stall   sync.Mutex // blocks writes while locked
	written atomic.Int64
}

func (l *fakeLink) BatchSize() int { return batch }

func (l *fakeLink) Close() error {
	close(l.closed)
	return nil
}

func (l *fakeLink) Read(bufs [][]byte, sizes []int, offset int) (int, error) {
	select {
	case <-l.reads:
	case <-l.closed:
		return 0, os.ErrClosed
	}
	for i, b := range bufs {
		packet := ipPacket(0, unix.IPPROTO_UDP)
		packet[2], packet[3] = byte(len(packet)>>8), byte(len(packet))
		packet[12], packet[16] = 10, 10 // source and destination
		sizes[i] = copy(b[offset:], packet)
	}
	return len(bufs), nil
}

func (l *fakeLink) Write(bufs [][]byte, _ int) (int, error) {
	l.stall.Lock()
	defer l.stall.Unlock()
	l.written.Add(int64(len(bufs)))
	return len(bufs), nil
}

// heap returns the used memory in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
