//go:build linux

package gateway

import (
	"sync"

	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/nft"
	"liqonet.io/liqonet/netops/tunnel/plain"
)

// senders reads from which addresses the packet filter accepted packets without encryption.
type senders struct {
	mu   sync.Mutex
	conn *nft.Conn // nil: not needed yet, or an error
}

// of implements the argument of plain.New.
func (s *senders) of(listenPort uint16) (all []plain.Sender, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		if s.conn, err = nft.Open(-1); err != nil {
			return nil, err
		}
	}
	found, err := s.conn.Senders(netops.Table, netops.Arrived(listenPort))
	if err != nil {
		_ = s.conn.Close() // replies that were not read would be taken for those to the next request
		s.conn = nil
	}
	for _, f := range found {
		all = append(all, plain.Sender{From: f.From, Idle: netops.ArrivedTime - f.Left})
	}
	return all, err
}

func (s *senders) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close()
	}
}
