package wireguard

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"

	"liqonet.io/liqonet/internal/testbed/assert"
)

// recorder is a TUN that records the sizes of the batches written to it.
type recorder struct {
	tun.Device
	batches []int
	err     error
}

func (r *recorder) Write(bufs [][]byte, _ int) (int, error) {
	r.batches = append(r.batches, len(bufs))
	return len(bufs), r.err
}

func (r *recorder) Close() error { return nil }

// ipPacket returns an IPv4 packet with that protocol, after the given headroom.
func ipPacket(headroom int, protocol byte) []byte {
	b := make([]byte, headroom+100)
	b[headroom], b[headroom+9] = 0x45, protocol
	return b
}

func TestWriteDoesNotCoalesceUDP(t *testing.T) {
	const headroom = 16
	tcp, udp := ipPacket(headroom, unix.IPPROTO_TCP), ipPacket(headroom, unix.IPPROTO_UDP)
	udp6 := make([]byte, headroom+60)
	udp6[headroom], udp6[headroom+6] = 0x60, unix.IPPROTO_UDP
	r := &recorder{}
	d := newTUNDevice(r, 1440)
	n, err := d.Write([][]byte{tcp, udp, tcp, udp6, udp, tcp}, headroom)
	if err != nil || n != 6 || !slices.Equal(r.batches, []int{1, 1, 1, 3}) {
		t.Errorf("wrote %d in batches of %v, error %v; want UDP one by one, then three", n, r.batches, err)
	}
}

func TestWriteStopsCoalescingAfterAnError(t *testing.T) {
	tcp := ipPacket(0, unix.IPPROTO_TCP)
	r := &recorder{err: unix.EINVAL}
	d := newTUNDevice(r, 1440)
	if _, err := d.Write([][]byte{tcp, tcp}, 0); !errors.Is(err, unix.EINVAL) {
		t.Errorf("error %v", err)
	}
	r.err, r.batches = nil, nil
	if _, err := d.Write([][]byte{tcp, tcp, tcp}, 0); err != nil || !slices.Equal(r.batches, []int{1, 1, 1}) {
		t.Errorf("batches of %v after a refusal, error %v", r.batches, err)
	}
}

func TestWriteToALinkThatIsDownDrops(t *testing.T) {
	d := newTUNDevice(&recorder{err: unix.EIO}, 1440)
	if _, err := d.Write([][]byte{ipPacket(0, unix.IPPROTO_UDP)}, 0); err != nil {
		t.Errorf("error %v", err)
	}
}

func TestMTUIsReportedUntilClosed(t *testing.T) {
	d := newTUNDevice(&recorder{}, 1440)
	d.setMTU(1440)
	d.setMTU(1400)
	d.setMTU(1380)
	if event := <-d.Events(); event != tun.EventMTUUpdate {
		t.Errorf("event %v", event)
	}
	if mtu, err := d.MTU(); mtu != 1380 || err != nil {
		t.Errorf("MTU %d, error %v", mtu, err)
	}
	assert.NoError(t, errors.Join(d.Close(), d.Close()))
	d.setMTU(1300)
	if event, open := <-d.Events(); open {
		t.Errorf("event %v after the close", event)
	}
}
