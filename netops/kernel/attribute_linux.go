package kernel

import (
	"encoding/binary"
	"net/netip"
	"reflect"
	"slices"

	raw "github.com/mdlayher/netlink"
)

// field is an attribute of a netlink message with the value that is encoded from or decoded into. A value is a *int,
// *uint32, *uint16 (in network byte order), *uint8, *string, *[]byte or *netip.Addr, or nested fields, []field.
type field struct {
	typ      uint16
	value    any
	required bool // also sent if zero
}

// optional returns a field that is sent unless its value is zero. For bytes, that is nil.
func optional(typ uint16, value any) field { return field{typ: typ, value: value} }

// required returns a field that is always sent.
func required(typ uint16, value any) field { return field{typ: typ, value: value, required: true} }

// sent reports whether the field is part of a request.
func (f field) sent() bool {
	if inside, ok := f.value.([]field); ok {
		return f.required || slices.ContainsFunc(inside, field.sent)
	}
	return f.required || !reflect.ValueOf(f.value).Elem().IsZero()
}

// encode writes fields.
func encode(ae *raw.AttributeEncoder, fields []field) {
	for _, f := range fields {
		if !f.sent() {
			continue
		}
		switch v := f.value.(type) {
		case *int:
			ae.Uint32(f.typ, uint32(*v))
		case *uint32:
			ae.Uint32(f.typ, *v)
		case *uint16:
			ae.Bytes(f.typ, binary.BigEndian.AppendUint16(nil, *v))
		case *uint8:
			ae.Uint8(f.typ, *v)
		case *string:
			ae.String(f.typ, *v)
		case *[]byte:
			ae.Bytes(f.typ, *v)
		case *netip.Addr:
			ae.Bytes(f.typ, v.AsSlice())
		case []field:
			ae.Nested(f.typ, func(inside *raw.AttributeEncoder) error {
				encode(inside, v)
				return nil
			})
		}
	}
}

// decode reads fields. Attributes without a field are ignored. Fields without an attribute keep their values.
func decode(ad *raw.AttributeDecoder, fields []field) error {
	for ad.Next() {
		i := slices.IndexFunc(fields, func(f field) bool { return f.typ == ad.Type() })
		if i < 0 {
			continue
		}
		switch v := fields[i].value.(type) {
		case *int:
			*v = int(ad.Uint32())
		case *uint32:
			*v = ad.Uint32()
		case *uint16:
			ad.Do(func(b []byte) error {
				_, err := binary.Decode(b, binary.BigEndian, v)
				return err
			})
		case *uint8:
			*v = ad.Uint8()
		case *string:
			*v = ad.String()
		case *[]byte:
			*v = ad.Bytes()
		case *netip.Addr:
			*v, _ = netip.AddrFromSlice(ad.Bytes())
		case []field:
			ad.Nested(func(inside *raw.AttributeDecoder) error { return decode(inside, v) })
		}
	}
	return ad.Err()
}

// unpack decodes a message: the fixed header and the fields after it.
func unpack(data []byte, header any, fields ...field) error {
	n, err := binary.Decode(data, binary.NativeEndian, header)
	if err != nil {
		return err
	}
	ad, err := raw.NewAttributeDecoder(data[n:])
	if err != nil {
		return err
	}
	return decode(ad, fields)
}
