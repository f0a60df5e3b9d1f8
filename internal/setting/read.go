package setting

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	errBool     = errors.New("must be true or false")
	errPort     = errors.New("must be a port, 1 to 65535")
	errSize     = errors.New("must be a number of bytes from 576 to 65535")
	errAddress  = errors.New("must be an IP address that a gateway can reach")
	errHost     = errors.New("must be an IP address that a gateway can reach, or a name such as gateway.example.com")
	errHostName = errors.New("must be a name in lower case such as gateway.example.com")
	errHostPort = errors.New("want host:port")
	errName     = errors.New("must be the name of an object, of a-z, 0-9, - and dots")
	errProxy    = errors.New("must be http://HOST:PORT or https://HOST:PORT; a user and password come from a Secret")
)

// YesOrNo reads a boolean.
func YesOrNo(text string) (bool, error) {
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, errBool
	}
	return yes, nil
}

// Port reads a port number.
func Port(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 0, 16)
	if err != nil || n == 0 {
		return 0, errPort
	}
	return uint16(n), nil
}

// PortOrAny is Port where 0 leaves the choice open.
func PortOrAny(text string) (uint16, error) {
	if text == "0" {
		return 0, nil
	}
	return Port(text)
}

// MinMTU is the size in bytes that every IPv4 host must accept (RFC 791).
const MinMTU = 576

// MaxMTU is the size in bytes of the largest IPv4 packet.
const MaxMTU = 65535

// PacketSize reads an MTU; 0 leaves the choice open.
func PacketSize(text string) (int, error) {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil || n != 0 && (n < MinMTU || n > MaxMTU) {
		return 0, errSize
	}
	return int(n), nil
}

// address reads an IP address by which other hosts can reach a host.
func address(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.IsGlobalUnicast() || a.Is4In6() || a.Zone() != "" {
		return netip.Addr{}, errAddress
	}
	return a, nil
}

// AddressOrAny is address where 0.0.0.0 or "" leaves the choice open.
func AddressOrAny(text string) (netip.Addr, error) {
	if text == "" || text == netip.IPv4Unspecified().String() {
		return netip.IPv4Unspecified(), nil
	}
	return address(text)
}

// HostOrAny reads an address or a DNS name; "" leaves the choice open. A name whose last label is a number, decimal or
// hexadecimal, is an address to many resolvers (inet_aton), or a mistyped one.
func HostOrAny(text string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	_, err := address(text)
	if text == "" || err == nil || !number.MatchString(name[strings.LastIndexByte(name, '.')+1:]) && len(name) <= maxName && dnsName.MatchString(name) {
		return text, nil
	}
	return "", errHost
}

// NameOrNone reads the name of an object in a cluster; "" for none.
func NameOrNone(text string) (string, error) {
	if text == "" || len(text) <= maxName && dnsName.MatchString(text) {
		return text, nil
	}
	return "", errName
}

// HostNameOrNone reads a DNS name as Kubernetes requires it of an Ingress: no address, and no capital letters; "" for
// none.
func HostNameOrNone(text string) (string, error) {
	_, errAddress := address(text)
	_, errHost := HostOrAny(text)
	if _, errName := NameOrNone(text); errAddress == nil || errHost != nil || errName != nil {
		return "", errHostName
	}
	return text, nil
}

// proxyURL matches the URLs of proxies, but for their host.
var proxyURL = regexp.MustCompile(`^https?://([^/?#@]+:[1-9][0-9]{0,4})$`)

// ProxyOrNone reads the URL of an HTTP proxy, with its port and without a user, path or query; "" for none.
func ProxyOrNone(text string) (string, error) {
	parts := proxyURL.FindStringSubmatch(text)
	if text == "" || parts != nil && HostPort(parts[1]) == nil {
		return text, nil
	}
	return "", errProxy
}

// HostPort rejects an endpoint that is not a host as by HostOrAny, but not "", with a port.
func HostPort(text string) error {
	host, port, err := net.SplitHostPort(text)
	if n, notNumber := strconv.ParseUint(port, 10, 16); err != nil || host == "" || notNumber != nil || n == 0 {
		return errHostPort
	}
	if _, err := HostOrAny(host); err != nil {
		return fmt.Errorf("host %w", err)
	}
	return nil
}

// maxName is the length of the longest DNS name (RFC 1123).
const maxName = 253

const label = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`

// number matches labels that inet_aton reads as a number, and "0x", which some implementations take for 0.
var number = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

var dnsName = regexp.MustCompile(`^` + label + `(\.` + label + `)*$`)
