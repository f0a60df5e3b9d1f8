package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"sync"
	"time"
)

// served is how long a server's certificate lasts. It is renewed in the middle of that.
const served = 24 * time.Hour

// Issuer makes the certificates of one server, for the names that its authority may vouch for.
type Issuer struct {
	authority Authority

	mu      sync.Mutex
	current *tls.Certificate // nil: none yet
}

// NewIssuer returns the issuer of an authority.
func NewIssuer(a Authority) *Issuer { return &Issuer{authority: a} }

// Certificate returns the certificate of now. It is a tls.Config's GetCertificate.
func (i *Issuer) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	if i.current != nil && now.Before(i.current.Leaf.NotAfter.Add(-served/2)) {
		return i.current, nil
	}
	c, err := i.authority.issue(now)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	i.current = c
	return c, nil
}

// issue makes a certificate, with a key of its own that is kept nowhere else.
func (a Authority) issue(now time.Time) (*tls.Certificate, error) {
	if !now.Before(a.Until()) {
		return nil, fmt.Errorf("the authority has ended at %s", a.Until().UTC().Format(time.RFC3339))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	names := a.certificate.PermittedDNSDomains
	until := now.Add(served)
	if until.After(a.Until()) {
		until = a.Until()
	}
	leaf, err := sign(&x509.Certificate{
		Subject:      pkix.Name{CommonName: names[0]},
		SerialNumber: serial(),
		NotBefore:    now.Add(-skew), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              names,
	}, a.certificate, key.Public(), a.key())
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}, nil
}
