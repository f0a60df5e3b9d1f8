package nft

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The canonical form of a kernel expression is its name and its netlink attributes, sorted, in hexadecimal:
// "cmp 1=00000001 3{1=0a01}". What is written and what the kernel dumps have the same form where they mean the
// same: attributes that are zero are left out (kernels differ in which they dump), counter values and the ids
// of sets too. It works on attributes, not on the structures of google/nftables, because those lose what they
// do not know, and a foreign rule must differ from ours.

// attrMask takes the flags (nested, byte order) from an attribute's type.
const attrMask = 0x3fff

// canonicalExpr returns the canonical form of an expression that is to be written.
func canonicalExpr(e expr.Any, members []byte) (string, error) {
	b, err := expr.Marshal(unix.NFPROTO_IPV4, e)
	if err != nil {
		return "", err
	}
	return canonicalElem(b, func(string) string { return anonymousText(members) })
}

// canonicalUserData returns the canonical form of what is stored beside a rule.
func canonicalUserData(b []byte) string { return "userdata " + hex.EncodeToString(b) }

// anonymousText stands for the name of an anonymous set: the kernel chooses that, the elements count.
func anonymousText(members []byte) string {
	return fmt.Sprintf("{%x}", slices.Sorted(slices.Values(members)))
}

// canonicalElem returns the canonical form of an element of a rule's list of expressions. Names of anonymous
// sets are replaced by what the function returns for them.
func canonicalElem(b []byte, anonymous func(set string) string) (string, error) {
	attrs, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return "", err
	}
	var name string
	var data []netlink.Attribute
	for _, a := range attrs {
		switch a.Type & attrMask {
		case unix.NFTA_EXPR_NAME:
			name = cString(a.Data)
		case unix.NFTA_EXPR_DATA:
			if data, err = netlink.UnmarshalAttributes(a.Data); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	words := []string{name}
	for _, a := range normalize(name, data) {
		if word := attrText(name, a, anonymous); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	return strings.Join(words, " "), nil
}

// normalize takes from an expression what the kernel adds or counts by itself.
func normalize(name string, attrs []netlink.Attribute) []netlink.Attribute {
	switch name {
	case "counter":
		return nil
	case "lookup":
		return slices.DeleteFunc(attrs, func(a netlink.Attribute) bool {
			return a.Type&attrMask == unix.NFTA_LOOKUP_SET_ID
		})
	case "nat":
		return normalizeNAT(attrs)
	}
	return attrs
}

// normalizeNAT takes away what nft_nat_init of nft_nat.c fills in: the end of a range that is one register,
// and the flags that say which of addresses and ports there are.
func normalizeNAT(attrs []netlink.Attribute) []netlink.Attribute {
	const implied = unix.NF_NAT_RANGE_MAP_IPS | unix.NF_NAT_RANGE_PROTO_SPECIFIED
	value := func(typ uint16) string {
		i := slices.IndexFunc(attrs, func(a netlink.Attribute) bool { return a.Type&attrMask == typ })
		if i < 0 {
			return ""
		}
		return string(attrs[i].Data)
	}
	out := make([]netlink.Attribute, 0, len(attrs))
	for _, a := range attrs {
		switch typ := a.Type & attrMask; {
		case typ == unix.NFTA_NAT_REG_ADDR_MAX && string(a.Data) == value(unix.NFTA_NAT_REG_ADDR_MIN),
			typ == unix.NFTA_NAT_REG_PROTO_MAX && string(a.Data) == value(unix.NFTA_NAT_REG_PROTO_MIN):
			continue
		case typ == unix.NFTA_NAT_FLAGS && len(a.Data) == 4:
			flags := binary.BigEndian.Uint32(a.Data) &^ uint32(implied)
			a.Data = binary.BigEndian.AppendUint32(nil, flags)
		}
		out = append(out, a)
	}
	return out
}

// attrText returns one attribute of the named expression, or "" for one that is zero.
func attrText(name string, a netlink.Attribute, anonymous func(string) string) string {
	typ := a.Type & attrMask
	switch {
	case isData(name, typ):
		return fmt.Sprintf("%d{%s}", typ, dataText(a.Data))
	case name == "lookup" && typ == unix.NFTA_LOOKUP_SET:
		set := cString(a.Data)
		if set == "" || strings.HasPrefix(set, "__") { // no set of a user's begins so
			set = anonymous(set)
		}
		return fmt.Sprintf("%d=%s", typ, set)
	case zero(a.Data):
		return ""
	}
	return fmt.Sprintf("%d=%x", typ, a.Data)
}

// isData reports whether the attribute holds nested data: a value or a verdict.
func isData(name string, typ uint16) bool {
	switch name {
	case "immediate":
		return typ == unix.NFTA_IMMEDIATE_DATA
	case "cmp":
		return typ == unix.NFTA_CMP_DATA
	case "bitwise":
		return typ == unix.NFTA_BITWISE_MASK || typ == unix.NFTA_BITWISE_XOR
	}
	return false
}

// dataText returns nested data without the flags of its attributes, which kernel and writer set differently. A value is
// kept even where it is zero.
func dataText(b []byte) string {
	return attrsText(b, func(typ uint16, data []byte) string {
		if typ != unix.NFTA_DATA_VERDICT {
			return fmt.Sprintf("%d=%x", typ, data)
		}
		return fmt.Sprintf("%d{%s}", typ, attrsText(data, func(typ uint16, data []byte) string {
			if typ == unix.NFTA_VERDICT_CHAIN {
				return fmt.Sprintf("%d=%s", typ, cString(data))
			}
			return fmt.Sprintf("%d=%x", typ, data)
		}))
	})
}

// attrsText returns nested attributes, each as its text.
func attrsText(b []byte, text func(typ uint16, data []byte) string) string {
	attrs, err := netlink.UnmarshalAttributes(b)
	if err != nil {
		return hex.EncodeToString(b)
	}
	words := make([]string, len(attrs))
	for i, a := range attrs {
		words[i] = text(a.Type&attrMask, a.Data)
	}
	return strings.Join(words, " ")
}

// cString returns a string of the kernel's without its final NUL.
func cString(b []byte) string { return strings.TrimRight(string(b), "\x00") }

func zero(b []byte) bool { return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 }) }
