package tunnel

import (
	"errors"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
)

// datagrams is wireguard-go's UDP, fit for a path MTU below the size of its packets. As wireguard-go does not know this
// type, it does not follow changes of the source address: a pod has one for life.
type datagrams struct{ conn.Bind }

// Send sends packets one by one if the kernel refuses them together. It segments a batch only if the pieces fit the
// path MTU that it knows (udp_send_skb: EMSGSIZE, on earlier kernels EINVAL), and keeps a lower one for ten minutes,
// also if the path has recovered. A packet alone it fragments. The receiver drops one that arrives twice.
func (d datagrams) Send(packets [][]byte, to conn.Endpoint) error {
	err := d.Bind.Send(packets, to)
	if len(packets) < 2 || !errors.Is(err, unix.EMSGSIZE) && !errors.Is(err, unix.EINVAL) {
		return err
	}
	err = nil
	for i := range packets {
		err = errors.Join(err, d.Bind.Send(packets[i:i+1], to))
	}
	return err
}
