package websocket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"
)

// TunnelID identifies a tunnel of a peering, by the numbers of its gateways.
type TunnelID struct{ Server, Client uint8 }

// Key proves to the other end of a tunnel that a connection is for it. It is derived from the preshared key.
type Key [sha256.Size]byte

// The proof of a request is its Authorization header: scheme, space, and the base64 of version, tunnel, Unix time,
// nonce, and the HMAC-SHA256 of these. It is not bound to host, path or TLS, which an ingress changes.
const (
	proofScheme  = "Liqonet "
	proofVersion = 1
	proofSigned  = 1 + 2 + 8 + nonceSize
	proofSize    = proofSigned + sha256.Size
	nonceSize    = 16
)

const (
	// clockTolerance is the difference of clocks at which a proof is valid.
	clockTolerance = 30 * time.Second
	// noncesMost limits the number of accepted proofs in twice that time. Only a holder of the key uses it up.
	noncesMost = 4096
)

type nonce [nonceSize]byte

// newProof returns the header of one request.
func newProof(key Key, id TunnelID, at time.Time) string {
	b := make([]byte, 0, proofSize)
	b = append(b, proofVersion, id.Server, id.Client)
	b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	var n nonce
	_, _ = rand.Read(n[:]) // it never fails
	b = append(b, n[:]...)
	return proofScheme + base64.RawURLEncoding.EncodeToString(append(b, mac(key, b)...))
}

func mac(key Key, b []byte) []byte {
	h := hmac.New(sha256.New, key[:])
	h.Write(b)
	return h.Sum(nil)
}

// proofs checks the proofs of requests.
type proofs struct {
	begin time.Time // a process does not know the nonces that earlier ones have accepted
	keys  func(TunnelID) (Key, bool)

	mu   sync.Mutex
	seen map[nonce]time.Time // accepted, until they expire
}

// check returns the tunnel of a valid header. The time that it takes does not depend on the key.
func (p *proofs) check(header string, now time.Time) (id TunnelID, ok bool) {
	b := make([]byte, base64.RawURLEncoding.DecodedLen(len(proofScheme)+2*proofSize))
	if len(header) != len(proofScheme)+base64.RawURLEncoding.EncodedLen(proofSize) || header[:len(proofScheme)] != proofScheme {
		return id, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(b, []byte(header[len(proofScheme):]))
	if err != nil || n != proofSize {
		return id, false
	}
	b = b[:n]
	id = TunnelID{b[1], b[2]}
	key, known := p.keys(id) // an unknown tunnel has a key of zeros
	if !hmac.Equal(mac(key, b[:proofSigned]), b[proofSigned:]) || !known || b[0] != proofVersion {
		return id, false
	}
	at := time.Unix(int64(binary.BigEndian.Uint64(b[3:])), 0)
	if at.Before(now.Add(-clockTolerance)) || at.After(now.Add(clockTolerance)) || at.Before(p.begin.Truncate(time.Second)) {
		return id, false
	}
	return id, p.first(nonce(b[11:proofSigned]), now)
}

// first reports whether a nonce was not used before, and stores it.
func (p *proofs) first(n nonce, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for known, at := range p.seen {
		if now.Sub(at) > 2*clockTolerance {
			delete(p.seen, known)
		}
	}
	if _, used := p.seen[n]; used || len(p.seen) >= noncesMost {
		return false
	}
	if p.seen == nil {
		p.seen = map[nonce]time.Time{}
	}
	p.seen[n] = now
	return true
}
