package nft

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Conn is a connection to nftables of one network namespace. It must be used by one goroutine at a time.
type Conn struct {
	conn    *nftables.Conn
	sock    *netlink.Conn                      // the socket of conn
	last    map[string]reading[Table]          // by the table's identity
	forward map[string]reading[[]ForwardChain] // by the owner
}

const (
	// bufferSize, in bytes, is enough for a transaction, which the kernel receives as one message, and for the kernel's
	// replies, one per command, all of which it sends before any is read. It has room for some 100,000 prefixes (48
	// bytes each) or 5,000 rules (some 500 bytes each, and up to 2 KiB in the replies).
	bufferSize = 16 << 20
	// answerTime limits the kernel's time for a transaction. It replies before the send call returns; replies that are
	// missing then will not arrive.
	answerTime = 30 * time.Second
)

// Open connects to nftables in the network namespace of the file descriptor, which can be closed afterwards; -1 is the
// namespace of the calling thread. Another namespace requires CAP_SYS_ADMIN, all else CAP_NET_ADMIN.
func Open(nsfd int) (*Conn, error) {
	c := &Conn{last: make(map[string]reading[Table]), forward: make(map[string]reading[[]ForwardChain])}
	opts := []nftables.ConnOption{nftables.AsLasting(), nftables.WithSockOptions(func(s *netlink.Conn) error {
		c.sock = s
		return errors.Join(s.SetReadBuffer(bufferSize), s.SetWriteBuffer(bufferSize))
	})}
	if nsfd >= 0 {
		opts = append(opts, nftables.WithNetNSFd(nsfd))
	}
	var err error
	if c.conn, err = nftables.New(opts...); err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	if _, err := c.generation(); err != nil {
		return nil, errors.Join(fmt.Errorf("open nftables: %w", err), c.Close())
	}
	return c, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.CloseLasting() }

// Apply executes the plan in one transaction, completely or not at all. A plan for a table that another program has
// changed since it was observed can fail; a plan for a newly observed table does not.
func (c *Conn) Apply(p Plan) error {
	if p.err != nil {
		return fmt.Errorf("change table %s: %w", p.table.id(), p.err)
	}
	if p.Empty() {
		return nil
	}
	b := &batch{conn: c.conn, table: &nftables.Table{Name: p.table.Name, Family: p.table.Family.number()}}
	for _, o := range p.ops {
		if o.queue(b); b.err != nil {
			return fmt.Errorf("%s: %w", o.text(p.table.id()), b.err)
		}
	}
	if err := c.flush(); err != nil {
		return fmt.Errorf("change table %s: %w", p.table.id(), err)
	}
	return nil
}

// flush sends the transaction and reads the replies. After an error, the number of replies can differ from that of
// commands (nfnetlink_rcv_batch of nfnetlink.c), so the remaining ones are read until the socket is empty.
func (c *Conn) flush() error {
	if err := c.sock.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	err := c.conn.Flush()
	for err != nil {
		if c.sock.SetReadDeadline(time.Now()) != nil {
			break
		}
		if _, e := c.sock.Receive(); errors.Is(e, os.ErrDeadlineExceeded) || errors.Is(e, unix.EBADF) {
			break
		}
	}
	return errors.Join(err, c.sock.SetDeadline(time.Time{}))
}
