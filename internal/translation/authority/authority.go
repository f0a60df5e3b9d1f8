// Package authority is the certificate authority of the translation service. `network init` makes it once; the
// service issues its own certificates by it, which last a day, and renews them by itself: nothing in the cluster
// must be written for that, and clients trust one certificate for ten years.
//
// The authority can vouch for the service's names alone, whoever gets hold of its key: other names, and all
// addresses, are excluded by its own certificate (RFC 5280, 4.2.1.10).
package authority

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const (
	lifetime = 10 * 365 * 24 * time.Hour
	// skew is how far a client's clock may be behind.
	skew = 5 * time.Minute
	// due is how long before its end an authority is replaced: longer than anyone waits between two upgrades.
	due = 365 * 24 * time.Hour
)

// Types of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// Authority is a certificate authority. The zero value is none. As a function its key has no content that a print
// could show.
type Authority struct {
	certificate *x509.Certificate
	key         func() crypto.Signer
}

// New makes an authority for servers of these DNS names, and of no others.
func New(names ...string) (Authority, error) {
	if len(names) == 0 {
		return Authority{}, errors.New("make a certificate authority: no names given")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, fmt.Errorf("make a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		Subject:      pkix.Name{CommonName: "liqonet " + names[0]},
		SerialNumber: serial(),
		NotBefore:    now.Add(-skew), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomains: names, PermittedDNSDomainsCritical: true,
		ExcludedIPRanges: []*net.IPNet{
			{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
		},
	}
	certificate, err := sign(template, template, key.Public(), key)
	return Authority{certificate: certificate, key: func() crypto.Signer { return key }}, err
}

// Parse reads an authority from PEM, as Encode writes it. Its errors do not quote what they read.
func Parse(certificate, key []byte) (Authority, error) {
	c, err := ParseCertificate(certificate)
	if err != nil {
		return Authority{}, err
	}
	block, _ := pem.Decode(key)
	if block == nil || block.Type != keyBlock {
		return Authority{}, errors.New("parse key: no PEM block " + keyBlock)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Authority{}, errors.New("parse key: not in PKCS #8")
	}
	k, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !k.PublicKey.Equal(c.PublicKey) {
		return Authority{}, errors.New("parse key: it is not that of the certificate")
	}
	return Authority{certificate: c, key: func() crypto.Signer { return k }}, nil
}

// ParseCertificate reads the certificate of an authority from PEM.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != certificateBlock {
		return nil, errors.New("parse certificate: no PEM block " + certificateBlock)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse certificate: %w", err)
	}
	if !c.IsCA {
		return nil, errors.New("parse certificate: not one of an authority")
	}
	return c, nil
}

// Encode writes certificate and key as PEM.
func (a Authority) Encode() (certificate, key []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key())
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return a.Certificate(), pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// Certificate is what clients trust, as PEM.
func (a Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: a.certificate.Raw})
}

// Until is when the authority ends.
func (a Authority) Until() time.Time { return a.certificate.NotAfter }

// Due reports whether the authority should be replaced: it ends within a year, or is one for other names.
func (a Authority) Due(names ...string) bool {
	return time.Until(a.Until()) < due || !slices.Equal(a.certificate.PermittedDNSDomains, names)
}

// sign returns a certificate by a template.
func sign(template, issuer *x509.Certificate, public crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, public, key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// serial is a random number of 126 bits: RFC 5280 wants it positive, and unique for an issuer.
func serial() *big.Int {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[0] &= 0x3f
	return new(big.Int).SetBytes(b[:])
}
