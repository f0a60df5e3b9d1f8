// Package capture captures the frames that arrive on links of a network namespace. It decodes their addresses and
// protocols. It needs root.
package capture

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/lab/netns"
)

const (
	buffer   = 256 << 20 // bytes a link, so that no frame is lost while this process waits for a core
	maxFrame = 1 << 16   // bytes; segments that a network card would split arrive whole
	allTypes = 0x0300    // ETH_P_ALL in network byte order
)

// Capture runs from Start to Close.
type Capture struct {
	sockets []*os.File
	running sync.WaitGroup

	mu     sync.Mutex // of handle
	handle func(Packet)
}

// Counts are how many frames there were on all links of a capture.
type Counts struct{ Seen, Missed int }

// Start calls handle for each frame that arrives on a link, one at a time. Frames that the namespace sends are left
// out: those that it forwards have arrived before. namespace is the path of a network namespace.
func Start(namespace string, links []string, handle func(Packet)) (*Capture, error) {
	ns, err := netns.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	c := &Capture{handle: handle}
	for _, link := range links {
		var socket *os.File
		err := ns.Do(func() (err error) {
			socket, err = listen(link)
			return err
		})
		if err != nil {
			_, e := c.Close()
			return nil, errors.Join(fmt.Errorf("capture on %s: %w", link, err), e)
		}
		c.sockets = append(c.sockets, socket)
		c.running.Go(func() { c.read(link, socket) })
	}
	return c, nil
}

// listen opens a socket that receives all frames that arrive on a link of the thread's namespace.
func listen(link string) (*os.File, error) {
	device, err := net.InterfaceByName(link)
	if err != nil {
		return nil, err
	}
	// Without a protocol it receives nothing before it is bound.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: allTypes, Ifindex: device.Index}))
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), link), nil
}

// read handles the frames of one link until its socket is closed or the link is removed.
func (c *Capture) read(link string, socket *os.File) {
	for buf := make([]byte, maxFrame); ; {
		n, err := socket.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		c.handle(Decode(link, buf[:n]))
		c.mu.Unlock()
	}
}

// Close ends the capture, and returns the number of frames.
func (c *Capture) Close() (Counts, error) {
	var counts Counts
	var failed error
	for _, s := range c.sockets {
		raw, err := s.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) {
				stats, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
				if err != nil {
					failed = errors.Join(failed, err)
					return
				}
				counts.Seen += int(stats.Packets)
				counts.Missed += int(stats.Drops)
			})
		}
		failed = errors.Join(failed, err, s.Close())
	}
	c.running.Wait()
	if failed != nil {
		return counts, fmt.Errorf("end capture: %w", failed)
	}
	return counts, nil
}
