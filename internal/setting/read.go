package setting

import (
	"errors"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	errBool    = errors.New("must be true or false")
	errPort    = errors.New("must be a port, 1 to 65535")
	errSize    = errors.New("must be a number of bytes from 576 to 65535")
	errAddress = errors.New("must be an IP address that a gateway can reach")
	errHost    = errors.New("must be an IP address that a gateway can reach, or a name such as gateway.example.com")
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

// maxName is the length of the longest DNS name (RFC 1123).
const maxName = 253

const label = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`

// number matches labels that inet_aton reads as a number, and "0x", which some implementations take for 0.
var number = regexp.MustCompile(`^([0-9]+|0x[0-9a-f]*)$`)

var dnsName = regexp.MustCompile(`^` + label + `(\.` + label + `)*$`)
