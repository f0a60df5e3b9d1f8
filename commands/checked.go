package commands

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/image"
)

// checked is the value of a flag that looks at what it is given before it takes it, and refuses it in words of its
// own: those of libraries speak of their functions.
type checked struct {
	pflag.Value

	check func(text string) error
}

// Set implements pflag.Value.
func (c checked) Set(text string) error {
	if err := c.check(text); err != nil {
		return err
	}
	return c.Value.Set(text)
}

// checkFlag adds a check to a flag that exists.
func checkFlag(flags *pflag.FlagSet, name string, check func(text string) error) {
	flag := flags.Lookup(name)
	flag.Value = checked{flag.Value, check}
}

// checkText is checkFlag for a flag that "" leaves as if it were not given.
func checkText(flags *pflag.FlagSet, name string, check func(text string) error) {
	checkFlag(flags, name, func(text string) error {
		if text == "" {
			return nil
		}
		return check(text)
	})
}

var (
	errBool      = errors.New("neither true nor false")
	errPort      = errors.New("not a port, 1 to 65535")
	errSize      = errors.New("not a number of bytes from 576 to 65535")
	errDuration  = errors.New("not a duration such as 30s")
	errAddress   = errors.New("not an address that a gateway can reach")
	errHost      = errors.New("neither an address that a gateway can reach nor a name such as gateway.example.com")
	errNamespace = errors.New("not a namespace: want at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	errImage     = errors.New("not the name of an image such as registry.example.com/liqonet:v1")
)

// port checks a port that must be told.
func port(text string) error {
	if n, err := strconv.ParseUint(text, 0, 16); err != nil || n == 0 {
		return errPort
	}
	return nil
}

// portOrAny checks a port that 0 leaves open.
func portOrAny(text string) error {
	if text == "0" {
		return nil
	}
	return port(text)
}

// Bounds of the MTU, in bytes: what every IPv4 host must accept (RFC 791), and the largest packet.
const (
	smallestMTU = 576
	largestMTU  = 65535
)

// packetSize checks an MTU; 0 leaves it open.
func packetSize(text string) error {
	if n, err := strconv.ParseUint(text, 0, 32); err != nil || n != 0 && (n < smallestMTU || n > largestMTU) {
		return errSize
	}
	return nil
}

func duration(text string) error {
	if _, err := time.ParseDuration(text); err != nil {
		return errDuration
	}
	return nil
}

// requestTimeout checks what kubectl takes too: a duration, or a number of seconds.
func requestTimeout(text string) error {
	if d, err := clientcmd.ParseTimeout(text); err != nil || d < 0 {
		return errDuration
	}
	return nil
}

// address checks an IP address under which a host can be found from another.
func address(text string) error {
	if a, err := netip.ParseAddr(text); err != nil || !a.IsGlobalUnicast() || a.Zone() != "" {
		return errAddress
	}
	return nil
}

// host checks an address or a DNS name. What ends with a number is no name, but an address with a mistake.
func host(text string) error {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	_, notNumber := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	if address(text) != nil && (notNumber == nil || len(validation.IsDNS1123Subdomain(name)) > 0) {
		return errHost
	}
	return nil
}

func namespace(text string) error {
	if len(validation.IsDNS1123Label(text)) > 0 {
		return errNamespace
	}
	return nil
}

func imageName(text string) error {
	if !image.IsReference(text) {
		return errImage
	}
	return nil
}

// plainBool replaces what the library says of a value that is neither true nor false.
func plainBool(err error) error {
	if parse, ok := errors.AsType[*strconv.NumError](err); ok && parse.Func == "ParseBool" {
		return errors.New(strings.ReplaceAll(err.Error(), parse.Error(), errBool.Error()))
	}
	return err
}
