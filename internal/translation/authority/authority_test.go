package authority

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const name = "translation.liqonet.svc"

func newAuthority(t *testing.T) Authority {
	t.Helper()
	a, err := New(name, name+".cluster.local")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// verify checks what an issuer presents as a client that trusts an authority.
func verify(t *testing.T, i *Issuer, a Authority, host string) error {
	t.Helper()
	c, err := i.Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(a.Certificate()) {
		t.Fatal("the authority's certificate is not one that clients read")
	}
	_, err = c.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func TestIssued(t *testing.T) {
	a := newAuthority(t)
	certificate, key, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	i := NewIssuer(again)
	for _, host := range []string{name, name + ".cluster.local"} {
		if err := verify(t, i, a, host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := verify(t, i, a, "kubernetes.default.svc"); err == nil {
		t.Error("it passes for another server")
	}
	if err := verify(t, i, newAuthority(t), name); err == nil {
		t.Error("another authority vouches for it")
	}
}

// TestNoOtherNames has a certificate of the authority's own key for what it must not vouch for.
func TestNoOtherNames(t *testing.T) {
	a := newAuthority(t)
	for _, c := range []x509.Certificate{
		{DNSNames: []string{"kubernetes.default.svc"}}, {DNSNames: []string{name, "example.com"}},
		{IPAddresses: []net.IP{net.ParseIP("10.96.0.1")}}, {IPAddresses: []net.IP{net.ParseIP("fd00::1")}},
	} {
		c.SerialNumber, c.NotBefore, c.NotAfter = serial(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		leaf, err := sign(&c, a.certificate, a.key().Public(), a.key())
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AddCert(a.certificate)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
			t.Errorf("it vouches for %v %v", c.DNSNames, c.IPAddresses)
		}
	}
}

// TestRenewal has days go by: a client that trusts the authority never meets a certificate that has ended, and none
// is made without need.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		i := NewIssuer(a)
		serials := map[string]bool{}
		for range 30 * 24 {
			if err := verify(t, i, a, name); err != nil {
				t.Fatal(err)
			}
			serials[i.current.Leaf.SerialNumber.String()] = true
			if left := time.Until(i.current.Leaf.NotAfter); left <= served/2-time.Hour {
				t.Fatalf("%s are left of it", left)
			}
			time.Sleep(time.Hour) //nolint:forbidigo // in a bubble of synctest this advances the clock and waits for nothing
		}
		if n := len(serials); n < 59 || n > 61 {
			t.Errorf("%d certificates in 30 days, want two a day", n)
		}
	})
}

func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t)
		names := []string{name, name + ".cluster.local"}
		if a.Due(names...) {
			t.Error("a new authority is to be replaced")
		}
		if !a.Due("translation.elsewhere.svc") {
			t.Error("it is not for these names, and not to be replaced")
		}
		time.Sleep(lifetime - due + time.Hour) //nolint:forbidigo // in a bubble of synctest this advances the clock
		if !a.Due(names...) {
			t.Error("it ends within a year, and is not to be replaced")
		}
		i := NewIssuer(a)
		time.Sleep(due - 2*time.Hour) //nolint:forbidigo // as above
		if err := verify(t, i, a, name); err != nil {
			t.Errorf("in the last hour: %v", err)
		}
		if !i.current.Leaf.NotAfter.Equal(a.Until()) {
			t.Errorf("a certificate lasts until %s, its authority until %s", i.current.Leaf.NotAfter, a.Until())
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // as above
		if c, err := i.Certificate(nil); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("after the end: %v, %v", c, err)
		}
	})
}

func TestParseRefuses(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	certificate, key, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, err := other.Encode()
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := NewIssuer(a).Certificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		certificate, key []byte
		want             string
	}{
		"nothing":             {nil, nil, "no PEM block CERTIFICATE"},
		"no key":              {certificate, nil, "no PEM block PRIVATE KEY"},
		"another's key":       {certificate, otherKey, "not that of the certificate"},
		"the key twice":       {key, key, "no PEM block CERTIFICATE"},
		"a damaged key":       {certificate, pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: []byte("x")}), "not in PKCS #8"},
		"a server's":          {pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: leaf.Leaf.Raw}), key, "not one of an authority"},
		"damaged certificate": {pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: []byte("x")}), key, "parse certificate"},
	} {
		if _, err := Parse(c.certificate, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", what, err, c.want)
		}
	}
	if _, err := New(); err == nil {
		t.Error("an authority for no names was made")
	}
}

// TestKeyIsNotPrinted: not even by a debug line.
func TestKeyIsNotPrinted(t *testing.T) {
	a := newAuthority(t)
	_, key, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(key)
	text := fmt.Sprintf("%v %+v %#v", a, a, a)
	if strings.Contains(text, strings.Trim(fmt.Sprintf("%d", block.Bytes[40:60]), "[]")) || strings.Contains(text, "PrivateKey:") {
		t.Error("the key is printed")
	}
}
