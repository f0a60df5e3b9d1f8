package records

import (
	"strings"
	"testing"
)

func TestReportsOfOtherNodesAreRejected(t *testing.T) {
	const text = `{"version":1,"name":"n1","number":7,"mtu":1500,"kernel":{"release":"r","wireGuard":true,"geneve":true,"vxlan":true}}`
	with := func(more string) string { return strings.TrimSuffix(text, "}") + "," + more + "}" }
	own, other := "n1", "n2"
	for name, c := range map[string]struct {
		lease  string
		holder *string
		text   string
		want   string // in the error; "": accepted
	}{
		"its own":             {"node-7", &own, text, ""},
		"another node's":      {"node-7", &other, text, `node "n1"`},
		"no holder":           {"node-7", nil, "never decoded", "holder"},
		"of another number":   {"node-8", &own, text, "number 7"},
		"no node's Lease":     {"leader", &own, "never decoded", "leader"},
		"an address":          {"node-10.80.0.7", &own, "never decoded", "10.80.0.7"},
		"number 0":            {"node-0", &own, "never decoded", "node-0"},
		"a negative number":   {"node--7", &own, "never decoded", "node--7"},
		"another form":        {"node-07", &own, "never decoded", "node-07"},
		"with a sign":         {"node-+7", &own, "never decoded", "node-+7"},
		"a number too high":   {"node-8388607", &own, "never decoded", "8388606"},
		"a number of 65 bits": {"node-18446744073709551623", &own, "never decoded", "8388606"},
		"a damaged one":       {"node-7", &own, `{"version":1,"name":[}`, "JSON"},
		"YAML":                {"node-7", &own, "version: 1\nname: n1\nnumber: 7\nmtu: 1500\n", "JSON"},
		"an IPv6 source":      {"node-7", &own, with(`"overlaySources":{"b":"fd00::1"}`), "fd00::1"},
		"no source":           {"node-7", &own, with(`"overlaySources":{"b":""}`), "IPv4"},
		"an IPv6 pod":         {"node-7", &own, with(`"pods":["::ffff:10.244.1.7"]`), "::ffff:10.244.1.7"},
		"a name that is none": {"node-7", &own, strings.Replace(text, "n1", `\u001b[2J`, 1), "printable"},
	} {
		n, err := DecodeReport(c.lease, c.holder, c.text)
		switch {
		case c.want == "" && (err != nil || n.Name != own):
			t.Errorf("%s: %v, %v", name, n, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}
