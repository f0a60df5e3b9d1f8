package wireguard

import (
	"errors"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
)

// datagrams is wireguard-go's UDP with support for a path MTU below the size of its packets. Because wireguard-go does
// not know this type, it does not monitor changes of the source address: the address of a pod does not change.
type datagrams struct{ conn.Bind }

// Open opens the sockets. wireguard-go would send by the link, and with the source address, to which the peer's last
// packet came: a pod has one address, and packets that another transport has delivered came by the loopback link.
func (d datagrams) Open(port uint16) ([]conn.ReceiveFunc, uint16, error) {
	all, port, err := d.Bind.Open(port)
	for i, receive := range all {
		all[i] = func(packets [][]byte, sizes []int, from []conn.Endpoint) (int, error) {
			n, err := receive(packets, sizes, from)
			for _, e := range from[:n] {
				if e != nil { // an empty packet has none
					e.ClearSrc()
				}
			}
			return n, err
		}
	}
	return all, port, err
}

// Send sends packets one by one if the kernel rejects the batch. The kernel segments a batch only if the segments fit
// the path MTU that it has cached (udp_send_skb: EMSGSIZE, on earlier kernels EINVAL), and caches a lower one for ten
// minutes, also if the path has recovered. Single packets are fragmented. The receiver drops duplicates.
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
