// Package dns is the name server of a lab: it answers for a set of names, over IPv4, and for no others.
package dns

import (
	"net"
	"net/netip"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// Port is where name servers listen.
const Port = 53

// maxMessage is the longest message over UDP without extensions (RFC 1035, 2.3.4), in bytes.
const maxMessage = 512

// ttl is the lifetime of an answer in seconds. It is short, because names change while tests run.
const ttl = 1

// Server answers DNS queries. The zero value has no names.
type Server struct {
	mu    sync.Mutex
	names map[string]map[string]netip.Addr // by owner
}

// Set replaces the names of one owner. They have no trailing dot.
func (s *Server) Set(keeper string, names map[string]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string]map[string]netip.Addr)
	}
	s.names[keeper] = names
}

// Serve answers until the socket is closed.
func (s *Server) Serve(conn net.PacketConn) error {
	buffer := make([]byte, maxMessage)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return err
		}
		if answer, err := s.answer(buffer[:n]); err == nil { // other messages get no answer
			_, _ = conn.WriteTo(answer, from) // a client that is gone
		}
	}
}

// answer answers one message.
func (s *Server) answer(message []byte) ([]byte, error) {
	var p dnsmessage.Parser
	header, err := p.Start(message)
	if err != nil {
		return nil, err
	}
	q, err := p.Question()
	if err != nil {
		return nil, err
	}
	address, known := s.Lookup(strings.ToLower(strings.TrimSuffix(q.Name.String(), ".")))
	reply := dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionDesired: header.RecursionDesired}
	if !known {
		reply.RCode = dnsmessage.RCodeNameError
	}
	b := dnsmessage.NewBuilder(nil, reply)
	b.EnableCompression()
	if err := b.StartQuestions(); err != nil {
		return nil, err
	}
	if err := b.Question(q); err != nil {
		return nil, err
	}
	if known && q.Type == dnsmessage.TypeA {
		if err := b.StartAnswers(); err != nil {
			return nil, err
		}
		about := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: ttl}
		if err := b.AResource(about, dnsmessage.AResource{A: address.As4()}); err != nil {
			return nil, err
		}
	}
	return b.Finish()
}

// Lookup returns the address of a name, in lower case.
func (s *Server) Lookup(name string) (netip.Addr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, names := range s.names {
		if a, ok := names[name]; ok {
			return a, true
		}
	}
	return netip.Addr{}, false
}
