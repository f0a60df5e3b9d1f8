package store

import (
	"fmt"
	"net/netip"
	"strings"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// document is the text of a registry: YAML, with a line for each reservation, such as
//
//	version: 1
//	pools:
//	- "10.0.0.0/8"
//	reservations:
//	- "10.71.0.0/16 peering/b peer-pods real=10.244.0.0/16"
//	- "10.96.0.0/12 cluster service-cidr shared"
//
// One string a reservation, not a mapping: a ConfigMap is limited to 1 MiB, and 10,000 mappings would fill it
// and take three times as long to read.
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

// Encode returns a registry as text. Equal contents give equal text.
func Encode(r *ipam.Registry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\n", records.SchemaVersion)
	list(&b, "pools", r.Pools(), netip.Prefix.AppendTo)
	list(&b, "reservations", r.List(), appendReservation)
	return b.String()
}

// list writes a YAML list of quoted strings. Prefixes, owners and purposes have no character that would need an
// escape.
func list[T any](b *strings.Builder, key string, items []T, text func(T, []byte) []byte) {
	b.WriteString(key)
	if len(items) == 0 {
		b.WriteString(": []\n")
		return
	}
	b.WriteString(":\n")
	var line []byte
	for _, item := range items {
		line = append(line[:0], `- "`...)
		line = append(text(item, line), "\"\n"...)
		b.Write(line)
	}
}

// Decode reads a registry from text. An unknown version, a malformed line or reservations that conflict are errors. Fields of
// later releases are ignored.
func Decode(text string) (*ipam.Registry, error) {
	r, _, err := decode(text)
	return r, err
}

// decode is Decode. unknown are the fields that it ignores.
func decode(text string) (r *ipam.Registry, unknown []string, err error) {
	d, ok := plain(text)
	if !ok {
		if d, unknown, err = records.ReadYAML[document](text); err != nil {
			return nil, nil, err
		}
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

// plain reads what Encode writes, a small part of YAML, in a twentieth of the time that any YAML takes. It is
// false for all else: records.ReadYAML must read it.
func plain(text string) (d document, ok bool) {
	keys := []string{fmt.Sprintf("version: %d", records.SchemaVersion), "pools:", "reservations:"}
	lists := []*[]string{nil, &d.Pools, &d.Reservations}
	var items *[]string
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		item, opened := strings.CutPrefix(line, `- "`)
		item, closed := strings.CutSuffix(item, `"`)
		switch {
		case !ended:
			return document{}, false
		case len(keys) > 0 && line == keys[0]:
			items, keys, lists = lists[0], keys[1:], lists[1:]
		case items != nil && opened && closed && !strings.ContainsFunc(item, special):
			*items = append(*items, item)
		default:
			return document{}, false
		}
	}
	d.Version = records.SchemaVersion
	return d, len(keys) == 0
}

// special reports whether a character in a quoted YAML string is, or may be, not itself.
func special(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }

func appendReservation(r ipam.Reservation, b []byte) []byte {
	b = r.Range.AppendTo(b)
	b = append(append(b, ' '), r.Owner...)
	b = append(append(b, ' '), r.Purpose...)
	if r.Real.IsValid() {
		b = r.Real.AppendTo(append(b, " "+realWord...))
	}
	if r.Shared {
		b = append(b, " "+sharedWord...)
	}
	return b
}

// parseReservation reads what appendReservation writes. What owner and purpose may be is for package ipam to
// say.
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
