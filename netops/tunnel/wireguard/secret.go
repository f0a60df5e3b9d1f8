package wireguard

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"
)

// redacted is the text of every Secret.
const redacted = "(redacted)"

// Secret is a private or preshared key that does not print, log or marshal. The zero value is no key.
type Secret struct {
	// A function, because fmt ignores the methods of values in unexported fields of other types: it prints the bytes of
	// an array, with %s even those of a pointer to one, but only the address of a function.
	key func() wgtypes.Key
}

// NewSecret wraps a key; a key of all zeros is no key.
func NewSecret(key wgtypes.Key) Secret {
	if key == (wgtypes.Key{}) {
		return Secret{}
	}
	return Secret{key: func() wgtypes.Key { return key }}
}

// parseSecret parses a key in base64, WireGuard's usual format. The error does not contain the text.
func parseSecret(base64 string) (Secret, error) {
	key, err := wgtypes.ParseKey(base64)
	if err != nil {
		return Secret{}, errors.New("WireGuard key: not 32 bytes in base64")
	}
	return NewSecret(key), nil
}

// clamped returns the private key as WireGuard keeps it (RFC 7748, 5). Its public half is the same.
func (s Secret) clamped() Secret {
	if s.IsZero() {
		return s
	}
	key := s.key()
	key[0] &= 248
	key[31] = key[31]&127 | 64
	return NewSecret(key)
}

// IsZero reports whether there is no key.
func (s Secret) IsZero() bool { return s.key == nil }

// PublicKey returns the public half of a private key; all zeros for none.
func (s Secret) PublicKey() wgtypes.Key {
	if s.IsZero() {
		return wgtypes.Key{}
	}
	return s.key().PublicKey()
}

// reveal returns the key; all zeros for none.
func (s Secret) reveal() wgtypes.Key {
	if s.key == nil {
		return wgtypes.Key{}
	}
	return s.key()
}

// Format implements fmt.Formatter: no verb prints the key.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.IsZero() {
		return "(none)"
	}
	return redacted
}

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, so that JSON and YAML do not contain the key either.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
