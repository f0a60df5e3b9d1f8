package nft

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// The canonical form of a kernel expression is its name and its netlink attributes, sorted, in hexadecimal: "cmp
// 1=00000001 3{0a01}". Expressions that are written and expressions that the kernel dumps have the same form if they
// are equivalent: attributes that are zero are omitted (kernels differ in which they dump), as are counter values and
// ids of sets. It is based on attributes instead of the types of google/nftables, which lose unknown attributes: a
// foreign rule must differ from ours.

// canonicalExpr returns the canonical form of an expression to be written.
func canonicalExpr(e expr.Any, members []byte) string {
	b, err := expr.Marshal(unix.NFPROTO_IPV4, e)
	if err != nil {
		return err.Error() // differs from all forms of the kernel
	}
	return canonicalElem(b, func(string) string { return anonymousText(members) })
}

// anonymousText replaces the name of an anonymous set: the kernel chooses the name, only the elements are compared.
func anonymousText(members []byte) string {
	return fmt.Sprintf("{%x}", slices.Sorted(slices.Values(members)))
}

// canonicalElem returns the canonical form of an element of a rule's list of expressions. The function returns
// replacements for the names of anonymous sets.
func canonicalElem(b []byte, anonymous func(set string) string) string {
	elem := decode(b)
	words := []string{elem.string(unix.NFTA_EXPR_NAME)}
	for typ, data := range decode(elem[unix.NFTA_EXPR_DATA]) {
		if word := attrText(words[0], typ, data, anonymous); word != "" {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	return strings.Join(words, " ")
}

// nestedData are the attributes of expressions that contain a value or a verdict.
var nestedData = map[string][]uint16{
	"immediate": {unix.NFTA_IMMEDIATE_DATA},
	"cmp":       {unix.NFTA_CMP_DATA},
	"bitwise":   {unix.NFTA_BITWISE_MASK, unix.NFTA_BITWISE_XOR},
}

// attrText returns one attribute of the named expression, or "" for one that is zero, a counter value or set by the
// kernel.
func attrText(name string, typ uint16, data []byte, anonymous func(string) string) string {
	switch {
	case slices.Contains(nestedData[name], typ):
		return fmt.Sprintf("%d{%s}", typ, dataText(data))
	case name == "lookup" && typ == unix.NFTA_LOOKUP_SET:
		set := cString(data)
		if set == "" || strings.HasPrefix(set, "__") { // names of anonymous sets only
			set = anonymous(set)
		}
		return fmt.Sprintf("%d=%s", typ, set)
	case name == "dynset" && typ == unix.NFTA_DYNSET_EXPR:
		return fmt.Sprintf("%d{%s}", typ, canonicalElem(data, anonymous))
	case name == "counter", name == "lookup" && typ == unix.NFTA_LOOKUP_SET_ID:
		return ""
	case name == "nat" && typ == unix.NFTA_NAT_FLAGS && len(data) == 4:
		// nft_nat_init of nft_nat.c sets flags for addresses and ports.
		const implied = unix.NF_NAT_RANGE_MAP_IPS | unix.NF_NAT_RANGE_PROTO_SPECIFIED
		data = binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(data)&^uint32(implied))
	}
	if !slices.ContainsFunc(data, func(c byte) bool { return c != 0 }) {
		return ""
	}
	return fmt.Sprintf("%d=%x", typ, data)
}

// dataText returns nested data: a value, also if it is zero, or a verdict.
func dataText(b []byte) string {
	data := decode(b)
	if nested, ok := data[unix.NFTA_DATA_VERDICT]; ok {
		verdict := decode(nested)
		return strings.TrimSpace(fmt.Sprintf("verdict %x %s", verdict[unix.NFTA_VERDICT_CODE], verdict.string(unix.NFTA_VERDICT_CHAIN)))
	}
	return hex.EncodeToString(data[unix.NFTA_DATA_VALUE])
}
