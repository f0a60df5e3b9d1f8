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

// Conn is a connection to nftables of one network namespace. It serves one goroutine at a time.
type Conn struct {
	conn    *nftables.Conn
	sock    *netlink.Conn                      // that of conn
	last    map[string]reading[Table]          // by the table's identity
	forward map[string]reading[[]ForwardChain] // by the owner
}

const (
	// bufferSize, in bytes, holds a transaction on the way to the kernel, which takes it as one message, and
	// the kernel's answers, one for each command, all of which it gives before any is read. It has room for
	// some 100,000 prefixes (48 bytes each) or 5,000 rules (some 500 bytes, and with what the kernel adds to
	// each answer 2 KiB there).
	bufferSize = 16 << 20
	// answerTime is how long the kernel may take for a transaction. It answers before the sending ends; what
	// is missing then never comes.
	answerTime = 30 * time.Second
)

// Open connects to nftables in the network namespace of the file descriptor, which can be closed afterwards;
// -1 is the namespace of the calling thread. Another namespace takes CAP_SYS_ADMIN, all else CAP_NET_ADMIN.
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

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.CloseLasting() }

// Apply executes the plan in one transaction: all of it or, with an error, nothing. A plan that was made from
// a table which another has changed since can fail; a plan from a new Observe will not.
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

// flush sends the transaction and reads the answers. Where one is an error there can be fewer or more of them
// than commands (nfnetlink_rcv_batch of nfnetlink.c), so that the rest is read off until none is left.
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
