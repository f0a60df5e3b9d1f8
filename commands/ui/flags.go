package ui

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"

	"liqonet.io/liqonet/internal/image"
	"liqonet.io/liqonet/internal/records"
)

// value is the value of a flag. read parses it; its errors are worded for the command line, unlike those of libraries.
type value[T any] struct {
	to   *T
	read func(text string) (T, error)
	kind string
}

// AddFlag adds a flag, with a shorthand if the name is like "output,o". kind is its argument in help; the default is
// *to.
func AddFlag[T any](flags *pflag.FlagSet, to *T, name, kind, usage string, read func(string) (T, error)) *pflag.Flag {
	name, shorthand, _ := strings.Cut(name, ",")
	return flags.VarPF(value[T]{to, read, kind}, name, shorthand, usage)
}

// Set implements pflag.Value.
func (v value[T]) Set(text string) error {
	parsed, err := v.read(text)
	if err == nil {
		*v.to = parsed
	}
	return err
}

// String returns the value in the form that Set accepts; "" for the zero value.
func (v value[T]) String() string {
	if v.to == nil || reflect.ValueOf(*v.to).IsZero() {
		return ""
	}
	if prefixes, is := any(*v.to).([]netip.Prefix); is {
		return List(prefixes)
	}
	return fmt.Sprint(reflect.Indirect(reflect.ValueOf(*v.to)))
}

// Type returns the flag's argument for help.
func (v value[T]) Type() string { return v.kind }

// TextFlag adds a flag that takes any text which check accepts. "" is as if the flag were not given.
func TextFlag(flags *pflag.FlagSet, to *string, name, kind, usage string, check func(string) error) {
	AddFlag(flags, to, name, kind, usage, func(text string) (string, error) {
		if text == "" || check == nil {
			return text, nil
		}
		return text, check(text)
	})
}

// BoolFlag adds a flag that is true when it is given without a value.
func BoolFlag(flags *pflag.FlagSet, to *bool, name, usage string) *pflag.Flag {
	flag := AddFlag(flags, to, name, "bool", usage, YesOrNo)
	flag.NoOptDefVal, flag.DefValue = "true", strconv.FormatBool(*to)
	return flag
}

// OptionalFlag adds a boolean flag that may be left open: the value is then nil.
func OptionalFlag(flags *pflag.FlagSet, to **bool, name, usage string) {
	AddFlag(flags, to, name, "bool", usage, Optional(YesOrNo)).NoOptDefVal = "true"
}

// Optional reads the value of a flag that may be left open: it is then nil.
func Optional[T any](read func(text string) (T, error)) func(text string) (*T, error) {
	return func(text string) (*T, error) {
		v, err := read(text)
		return &v, err
	}
}

// EnumFlag adds a flag that takes one of the allowed words, in any case, with completion.
func EnumFlag[T ~string](cmd *cobra.Command, to *T, name, usage string, allowed ...T) {
	words := make([]string, len(allowed))
	for i, word := range allowed {
		words[i] = string(word)
	}
	AddFlag(cmd.Flags(), to, name, strings.Join(words, "|"), usage, func(text string) (none T, err error) {
		i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, text) })
		if i < 0 {
			return none, fmt.Errorf("must be one of %s", strings.Join(words, ", "))
		}
		return allowed[i], nil
	})
	Complete(cmd, name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// PrefixFlag adds a flag that takes one CIDR.
func PrefixFlag(flags *pflag.FlagSet, to *netip.Prefix, name, usage string) {
	AddFlag(flags, to, name, "CIDR", usage, ParsePrefix)
}

// PrefixesFlag adds a flag that takes CIDRs, separated by commas or by repeating the flag.
func PrefixesFlag(flags *pflag.FlagSet, to *[]netip.Prefix, name, usage string) {
	AddFlag(flags, to, name, "CIDR,...", usage, func(text string) ([]netip.Prefix, error) { return Appended(*to, text, ParsePrefix) })
}

// Appended is a list with the values of a text, which commas separate, at its end.
func Appended[T any](list []T, text string, read func(text string) (T, error)) ([]T, error) {
	list = slices.Clone(list)
	for field := range strings.SplitSeq(text, ",") {
		v, err := read(strings.TrimSpace(field))
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

var (
	errBool      = errors.New("must be true or false")
	errPort      = errors.New("must be a port, 1 to 65535")
	errGateways  = fmt.Errorf("must be a number from 1 to %d", records.MaxGateways)
	errSize      = errors.New("must be a number of bytes from 576 to 65535")
	errDuration  = errors.New("must be a duration such as 30s")
	errPositive  = errors.New("must be longer than zero")
	errAddress   = errors.New("must be an IP address that a gateway can reach")
	errHost      = errors.New("must be an IP address that a gateway can reach, or a name such as gateway.example.com")
	errNamespace = errors.New("must be a namespace: at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	// ErrImage is the error of ImageName.
	ErrImage = errors.New("must be the name of an image such as registry.example.com/liqonet:v1")
)

// YesOrNo parses a boolean.
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

// PortOrAny is port where 0 leaves the choice open.
func PortOrAny(text string) (uint16, error) {
	if text == "0" {
		return 0, nil
	}
	return Port(text)
}

// GatewayCount reads a number of gateways.
func GatewayCount(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 8)
	if err != nil || n < 1 || n > records.MaxGateways {
		return 0, errGateways
	}
	return int(n), nil
}

// Limits for the MTU, in bytes: the size that every IPv4 host must accept (RFC 791), and the largest packet.
const (
	smallestMTU = 576
	largestMTU  = 65535
)

// PacketSize reads an MTU; 0 leaves the choice open.
func PacketSize(text string) (int, error) {
	n, err := strconv.ParseUint(text, 0, 32)
	if err != nil || n != 0 && (n < smallestMTU || n > largestMTU) {
		return 0, errSize
	}
	return int(n), nil
}

// PositiveDuration reads a duration within which something can happen.
func PositiveDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, errDuration
	case d <= 0:
		return 0, errPositive
	}
	return d, nil
}

// RequestTimeout checks what kubectl takes too: a duration, or a number of seconds.
func RequestTimeout(text string) error {
	if d, err := clientcmd.ParseTimeout(text); err != nil || d < 0 {
		return errDuration
	}
	return nil
}

// address parses an IP address by which other hosts can reach a host.
func address(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.IsGlobalUnicast() || a.Zone() != "" {
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

// HostOrAny is host where "" leaves the choice open.
func HostOrAny(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return text, host(text)
}

// host checks an address or a DNS name. A name whose last label is a number is a mistyped address.
func host(text string) error {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	_, notNumber := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 64)
	if _, err := address(text); err != nil && (notNumber == nil || len(validation.IsDNS1123Subdomain(name)) > 0) {
		return errHost
	}
	return nil
}

// Namespace accepts the name of a namespace.
func Namespace(text string) error {
	if len(validation.IsDNS1123Label(text)) > 0 {
		return errNamespace
	}
	return nil
}

// ImageName accepts the name of an image.
func ImageName(text string) error {
	if !image.IsReference(text) {
		return ErrImage
	}
	return nil
}

// ParsePrefix parses a CIDR without host bits.
func ParsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, fmt.Errorf("%q is not a CIDR such as 10.244.0.0/16", text)
	case !p.Addr().Is4():
		return netip.Prefix{}, errors.New("only IPv4 is supported")
	case p != p.Masked():
		return netip.Prefix{}, fmt.Errorf("%s has host bits set: use %s", p, p.Masked())
	}
	return p, nil
}

// Complete sets how a flag's argument is completed. It panics where the flag does not exist: the tree of
// commands is then wrong for every user.
func Complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}
