package ui

import (
	"errors"
	"fmt"
	"net/netip"
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
	"liqonet.io/liqonet/internal/setting"
)

// AddFlag adds a flag, with a shorthand if the name is like "output,o". kind is its argument in help; the default is
// *to.
func AddFlag[T any](flags *pflag.FlagSet, to *T, name, kind, usage string, read func(string) (T, error)) *pflag.Flag {
	name, shorthand, _ := strings.Cut(name, ",")
	return flags.VarPF(setting.Value[T]{To: to, Read: read, Kind: kind}, name, shorthand, usage)
}

// SettingFlag adds the flag of a setting. A boolean one is true without a value; words are completed.
func SettingFlag(cmd *cobra.Command, value setting.Text, name, usage string) *pflag.Flag {
	flag := cmd.Flags().VarPF(value, name, "", usage)
	if value.Type() == "bool" {
		flag.NoOptDefVal = "true"
	}
	if words := strings.Split(value.Type(), "|"); len(words) > 1 {
		Complete(cmd, name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return flag
}

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
	flag := AddFlag(flags, to, name, "bool", usage, setting.YesOrNo)
	flag.NoOptDefVal, flag.DefValue = "true", strconv.FormatBool(*to)
	return flag
}

// EnumFlag adds a flag that takes one of the allowed words, in any case, with completion.
func EnumFlag[T ~string](cmd *cobra.Command, to *T, name, usage string, allowed ...T) {
	SettingFlag(cmd, setting.Value[T]{To: to, Read: setting.Word(allowed...), Kind: setting.Words(allowed...)}, name, usage)
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
	errDuration  = errors.New("must be a duration such as 30s")
	errPositive  = errors.New("must be longer than zero")
	errNamespace = errors.New("must be a namespace: at most 63 of a-z, 0-9 and -, beginning and ending with a letter or digit")
	// ErrImage is the error of ImageName.
	ErrImage = errors.New("must be the name of an image such as registry.example.com/liqonet:v1")
)

// GatewayCount reads a number of gateways.
func GatewayCount(text string) (int, error) { return Between(1, records.MaxGateways)(text) }

// Between returns a function that reads a number from least to most.
func Between(least, most int) func(text string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("must be a number from %d to %d", least, most)
		}
		return n, nil
	}
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
