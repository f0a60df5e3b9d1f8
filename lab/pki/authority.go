// Package pki issues the certificates of one lab cluster. They are worth nothing outside the lab and end with
// it.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// validity of every certificate: longer than any lab lives.
const validity = 30 * 24 * time.Hour

// Authority signs certificates.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte
}

// Pair is a certificate and its private key, PEM.
type Pair struct {
	Certificate []byte
	Key         []byte
}

// Subject is the subject of a certificate, of a client or a server.
type Subject struct {
	User      string
	Group     string // "": none
	Names     []string
	Addresses []netip.Addr
}

// NewAuthority makes a self-signed authority.
func NewAuthority(name string) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	t, err := template(name)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign
	cert, err := sign(t, t, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{key: key, cert: cert, pem: encode("CERTIFICATE", cert.Raw)}, nil
}

// Certificate is the authority's own, PEM.
func (a *Authority) Certificate() []byte { return a.pem }

// Pair is the authority's certificate with its key, for a controller that signs by itself.
func (a *Authority) Pair() (Pair, error) {
	key, err := encodeKey(a.key)
	return Pair{Certificate: a.pem, Key: key}, err
}

// Issue makes a key and a certificate for it.
func (a *Authority) Issue(s Subject) (Pair, error) {
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	t, err := template(s.User)
	if err != nil {
		return Pair{}, err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	t.DNSNames = s.Names
	if s.Group != "" {
		t.Subject.Organization = []string{s.Group}
	}
	for _, addr := range s.Addresses {
		t.IPAddresses = append(t.IPAddresses, net.IP(addr.AsSlice()))
	}
	cert, err := sign(t, a.cert, key, a.key)
	if err != nil {
		return Pair{}, err
	}
	encoded, err := encodeKey(key)
	return Pair{Certificate: encode("CERTIFICATE", cert.Raw), Key: encoded}, err
}

// SigningKey makes a key for service account tokens: private and public, PEM.
func SigningKey() (private, public []byte, err error) {
	key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	private, err = encodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encode public key: %w", err)
	}
	return private, encode("PUBLIC KEY", der), nil
}

// encodeKey returns a private key as PEM.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

func template(commonName string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // RFC 5280: at most 20 octets
	if err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    now.Add(-time.Hour), // for clocks that are behind
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, nil
}

func sign(t, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), parentKey)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %q: %w", t.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// X509 is the authority's own certificate.
func (a *Authority) X509() *x509.Certificate { return a.cert }
