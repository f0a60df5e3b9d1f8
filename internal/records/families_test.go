package records_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// notServed is the reason for which records with IPv6 are rejected.
const notServed = "IPv6 is not served yet"

// TestFamilies: a list with an entry for each address family has exactly one, of IPv4. IPv6 is rejected with one
// reason, also in IPv4-mapped form.
func TestFamilies(t *testing.T) {
	cases := map[string]string{
		"10.70.0.0/16": "", "": "0 entries: want one, of IPv4", "10.70.0.0/16 10.71.0.0/16": "2 entries: want one, of IPv4", "10.70.0.0/16 10.70.0.0/16": "2 entries",
		"fd00::/64": notServed, "10.70.0.0/16 fd00::/64": notServed, "fd00::/64 10.70.0.0/16": notServed, "fd00::/64 fd01::/64": notServed,
		"::ffff:10.70.0.0/112": notServed, "::/0": notServed, "10.70.0.1/16": "host bits",
	}
	const fabric = "version: 1\nclusterID: x\nname: a\n"
	p := peering()
	p.Peer.ExternalCIDRs = nil
	peer, err := records.Draft(p)
	require.NoError(t, err)
	p = peering()
	p.Local.ExternalCIDRs = nil
	local, err := records.Draft(p)
	require.NoError(t, err)
	for _, list := range []struct {
		field, text, element string
		all                  string // the error for a range of all addresses
		decode               func(string) error
	}{
		{"externalCIDRs", fabric + "internalCIDRs: [10.80.0.0/16]\nexternalCIDRs: null", "%s", "same length", decoded[records.Fabric]},
		{"internalCIDRs", fabric + "externalCIDRs: [10.80.0.0/16]\ninternalCIDRs: null", "%s", "same length", decoded[records.Fabric]},
		{"externalCIDRs", peer, "{real: %s, seen: %[1]s}", "want a length of /8 to /24", decoded[records.Peering]},
		{"externalCIDRs", local, "{real: %s, seen: %[1]s}", "", decoded[records.Peering]}, // only translates addresses
	} {
		cases := maps.Clone(cases)
		cases["0.0.0.0/0"] = list.all
		for entries, want := range cases {
			var all []string
			for _, e := range strings.Fields(entries) {
				all = append(all, fmt.Sprintf(list.element, `"`+e+`"`))
			}
			text := strings.Replace(list.text, list.field+": null", list.field+": ["+strings.Join(all, ", ")+"]", 1)
			err := list.decode(text)
			if want == "" {
				assert.NoError(t, err)
				continue
			}
			assert.ErrorContains(t, entries+" in\n"+text, err, want)
			if want == notServed && err != nil && strings.Count(err.Error(), notServed) != len(strings.Split(err.Error(), "\n")) {
				t.Errorf("%s in\n%s\nhas other reasons: %v", entries, text, err)
			}
		}
	}
}

// TestFamiliesOfNodes: the report of a node, which any node can write, has no IPv6 in its lists.
func TestFamiliesOfNodes(t *testing.T) {
	for field, want := range map[string]string{
		`"podCIDRs":["10.244.1.0/24"]`: "", `"podCIDRs":["10.244.1.0/24","fd00::/64"]`: notServed, `"podCIDRs":["::ffff:10.244.1.0/120"]`: notServed, `"podCIDRs":[""]`: "want an IPv4 range",
		`"pods":["10.244.9.3"]`: "", `"pods":["10.244.9.3","fd00::3"]`: "want an IPv4 address", `"pods":["::ffff:10.244.9.3"]`: "want an IPv4 address", `"pods":[""]`: "want an IPv4 address",
	} {
		err := decoded[records.Node](`{"version":1,"name":"n","number":7,"mtu":1500,` + field + `}`)
		if want == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, field, err, want)
		}
	}
}

func decoded[T records.Document](text string) error {
	_, err := records.Decode[T](text)
	return err
}
