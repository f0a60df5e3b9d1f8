package websocket

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"time"
)

// protocol is the only one that is offered: with HTTP/2, an ingress would refuse the upgrade.
const protocol = "http/1.1"

// newTLS returns settings that both ends share. A ClientHello with ML-KEM needs two packets, which some middleboxes
// drop (https://tldr.fail); WireGuard, with its preshared key, is inside.
func newTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{protocol}, CurvePreferences: []tls.CurveID{tls.X25519},
		DynamicRecordSizingDisabled: true,
	}
}

// serverTLS returns the settings of a server whose key both ends derive from the preshared key.
func serverTLS(seed Key) (*tls.Config, error) {
	private := ed25519.NewKeyFromSeed(seed[:])
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, private.Public(), private)
	if err != nil {
		return nil, err
	}
	c := newTLS()
	c.Certificates = []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: private}}
	return c, nil
}

// clientTLS returns the settings for a server with the key of a seed. With an ingress, whoever has its host's
// certificate ends TLS: there is no key to expect, and nothing depends on it, because WireGuard is inside.
func clientTLS(seed Key, host string, ingress bool) *tls.Config {
	c := newTLS()
	c.ServerName, c.InsecureSkipVerify = host, true // but VerifyConnection
	if ingress {
		return c
	}
	want := ed25519.NewKeyFromSeed(seed[:]).Public()
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if have, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); !ok || !have.Equal(want) {
			return errors.New("the server's key is not that of the peer's gateway: something between ends TLS")
		}
		return nil
	}
	return c
}
