// Package store encodes an ipam.Registry as text, and decodes it: the content of ConfigMap "ipam". Package
// internal/inventory updates the ConfigMap and coordinates several writers.
//
// Text that is damaged or of another schema version is an error, and must not be overwritten. Text with fields of a
// later release can be read, but must not be changed.
package store

import (
	"fmt"
	"net/netip"
	"strings"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// document is the text of a registry: YAML, with one line per reservation, such as
//
//	version: 1
//	pools:
//	- "10.0.0.0/8"
//	reservations:
//	- "10.71.0.0/16 peering/b peer-pods real=10.244.0.0/16"
//	- "10.96.0.0/12 cluster service-cidr shared"
//
// A reservation is one string instead of a mapping, because a ConfigMap is limited to 1 MiB: 10,000 mappings would fill
// it and take three times as long to decode.
type document struct {
	Version      int      `json:"version"`
	Pools        []string `json:"pools"`
	Reservations []string `json:"reservations"`
}

// Words of a reservation's line after its range, owner and purpose.
const (
	realWord   = "real="
	sharedWord = "shared"
)

// Encode returns a registry as text. Equal registries have equal texts.
func Encode(r *ipam.Registry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\n", records.SchemaVersion)
	list(&b, "pools", r.Pools(), netip.Prefix.String)
	list(&b, "reservations", r.List(), line)
	return b.String()
}

// list writes a YAML list of quoted strings. Prefixes, owners and purposes contain no character that needs an escape.
func list[T any](b *strings.Builder, key string, items []T, text func(T) string) {
	if len(items) == 0 {
		b.WriteString(key + ": []\n")
		return
	}
	b.WriteString(key + ":\n")
	for _, item := range items {
		b.WriteString("- \"" + text(item) + "\"\n")
	}
}

// Decode reads a registry from text. An unknown version, a malformed line and reservations that conflict are errors.
// Fields of later releases are ignored.
func Decode(text string) (*ipam.Registry, error) {
	r, _, err := DecodeKnown(text)
	return r, err
}

// DecodeKnown is Decode for callers that update the registry. unknown are the names of the fields that it ignored.
func DecodeKnown(text string) (r *ipam.Registry, unknown []string, err error) {
	d, unknown, err := records.ReadText[document](records.ComponentIPAM, text)
	if err != nil {
		return nil, nil, err
	}
	r, err = d.registry()
	return r, unknown, err
}

func (d document) registry() (*ipam.Registry, error) {
	pools := make([]netip.Prefix, len(d.Pools))
	for i, p := range d.Pools {
		var err error
		if pools[i], err = netip.ParsePrefix(p); err != nil {
			return nil, fmt.Errorf("damaged document: pool %q: %w", p, err)
		}
	}
	held := make([]ipam.Reservation, len(d.Reservations))
	for i, line := range d.Reservations {
		var err error
		if held[i], err = parseReservation(line); err != nil {
			return nil, fmt.Errorf("damaged document: reservation %q: %w", line, err)
		}
	}
	r, err := ipam.Restore(pools, held)
	if err != nil {
		return nil, fmt.Errorf("damaged document: %w", err)
	}
	return r, nil
}

// line returns a reservation as text.
func line(r ipam.Reservation) string {
	words := []string{r.Range.String(), string(r.Owner), string(r.Purpose)}
	if r.Real.IsValid() {
		words = append(words, realWord+r.Real.String())
	}
	if r.Shared {
		words = append(words, sharedWord)
	}
	return strings.Join(words, " ")
}

// parseReservation is the inverse of line. It does not validate owner and purpose; ipam.Restore does.
func parseReservation(line string) (ipam.Reservation, error) {
	words := strings.Split(line, " ")
	if len(words) < 3 {
		return ipam.Reservation{}, fmt.Errorf("not of the form RANGE OWNER PURPOSE [%sRANGE] [%s]", realWord, sharedWord)
	}
	r := ipam.Reservation{Owner: ipam.Owner(words[1]), Purpose: ipam.Purpose(words[2])}
	var err error
	if r.Range, err = netip.ParsePrefix(words[0]); err != nil {
		return r, err
	}
	rest := words[3:]
	if len(rest) > 0 && strings.HasPrefix(rest[0], realWord) {
		if r.Real, err = netip.ParsePrefix(strings.TrimPrefix(rest[0], realWord)); err != nil {
			return r, err
		}
		rest = rest[1:]
	}
	if len(rest) > 0 && rest[0] == sharedWord {
		r.Shared = true
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return r, fmt.Errorf("unknown word %q", rest[0])
	}
	return r, nil
}
