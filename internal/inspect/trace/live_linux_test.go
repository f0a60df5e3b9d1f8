package trace

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/ipam/translate"
)

// TestJudge checks that places without a probe leave the result unknown, unless the other places show it.
func TestJudge(t *testing.T) {
	to := netip.MustParseAddr("10.71.2.5")
	left := []probe.Sighting{{To: to, LeftTo: to, Out: "x"}}
	lost := []probe.Sighting{{To: to, Dropped: "drop by rule 1 of chain c of table inet t"}}
	gone := []string{"the pod is gone"}
	for name, c := range map[string]struct {
		kind    translate.Kind
		places  []Place // of a sender in a, and receivers in b
		want    string  // in JSON
		crosses bool
	}{
		"answered":                {places: []Place{{There: left, Back: left}, {There: left}}, want: `{"arrived":true,"answered":true}`, crosses: true},
		"lost":                    {places: []Place{{There: left}, {}}, want: `{"arrived":false,"answered":false}`},
		"dropped":                 {places: []Place{{There: lost}, {Errors: gone}}, want: `{"arrived":false,"answered":false}`},
		"another route":           {places: []Place{{Detour: "rule 50", There: left, Back: left, Errors: gone}, {There: left}}, want: `{"arrived":false,"answered":false}`},
		"receiver not asked":      {places: []Place{{There: left}, {Errors: gone}}, want: `{"answered":false,"unknown":"node  of b was not asked: the pod is gone"}`},
		"answered, not asked":     {places: []Place{{There: left, Back: left}, {Errors: gone}}, want: `{"arrived":true,"answered":true}`, crosses: true},
		"sender not read":         {places: []Place{{Errors: gone}, {There: left}}, want: `{"unknown":"node  of a was not asked: the pod is gone"}`},
		"exposed, one not asked":  {kind: translate.Exposed, places: []Place{{There: left}, {Errors: gone}, {}}, want: `{"answered":false,"unknown":"node  of b was not asked: the pod is gone"}`},
		"exposed, by another one": {kind: translate.Exposed, places: []Place{{There: left, Back: left}, {There: left}, {Errors: gone}}, want: `{"arrived":true,"answered":true}`, crosses: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := Live{Packet: probe.Flow{Protocol: string(UDP)}, Places: slices.Clone(c.places)}
			for i := range l.Places {
				l.Places[i].Kind, l.Places[i].Cluster = Node, "b"
			}
			l.Places[0].Cluster = "a"
			l.judge(Result{To: End{Cluster: "b", Kind: c.kind}})
			got, err := json.Marshal(struct {
				Arrived  *bool  `json:"arrived,omitempty"`
				Answered *bool  `json:"answered,omitempty"`
				Unknown  string `json:"unknown,omitempty"`
			}{l.Arrived, l.Answered, l.Unknown})
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, want %s (%v)", got, c.want, err)
			}
			if l.crosses() != c.crosses {
				t.Errorf("crosses: %v", l.crosses())
			}
		})
	}
}
