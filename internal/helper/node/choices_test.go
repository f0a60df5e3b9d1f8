//go:build linux

package node

import (
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/internal/testbed/choices"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/echo"
)

// choosingNode returns a node; without a pod, the location of its first gateway is unknown.
func choosingNode(mode records.GatewayMode, noPod bool) choices.Chooser {
	p, n := sample.Peering(), newProbes(nil)
	p.Settings.GatewayMode = &mode
	p.Gateways = append(p.Gateways, p.Gateways[0])
	fabric := sample.Fabric()
	v := view{fabric: &fabric, Choice: serving.Choice{Peerings: []records.Peering{p}}, gateways: map[records.GatewayID]records.Gateway{}}
	var ids [2]records.GatewayID
	var probes [2]*gatewayProbes
	for i := range ids {
		ids[i] = records.GatewayID{Peering: p.Name, Number: i + 1}
		probes[i] = newGatewayProbes(7, 1000, n.news)
		probes[i].setUse(false, make(chan struct{}, 1))
		n.paths[v.key(p, ids[i])] = probes[i]
		if i > 0 || !noPod {
			v.gateways[ids[i]] = sample.Gateway()
		}
	}
	return choices.Chooser{
		Answer: func(i int, c echo.Content) { probes[i].gatewayAnswered(echo.Message{Content: c}, 0) },
		Ask:    func(int, echo.Content) {},
		Lose:   func(i, consecutive int) { probes[i].Missed(consecutive, overlayMisses, time.Now()) },
		Silent: func(i int) { probes[i].gatewaySilent() },
		Least:  overlayMisses,
		Unused: func() [2]bool { all := n.unused(v); return [2]bool{all[ids[0]], all[ids[1]]} },
	}
}

// TestWhichGatewaysCarryPackets checks the table of choices for a node.
func TestWhichGatewaysCarryPackets(t *testing.T) { choices.Run(t, "node", choosingNode) }

// TestDeafNode checks the report of a node that no answers of one of several gateways arrive.
func TestDeafNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newGatewayProbes(7, 1000, make(chan struct{}, 1))
		expect := func(what string, want bool) {
			t.Helper()
			if p.content().NoWay != want {
				t.Errorf("%s: deaf %t, want %t", what, !want, want)
			}
		}
		expect("one gateway", false)
		p.setUse(false, make(chan struct{}, 1))
		expect("no answer yet", true)
		choices.Passing(time.Second, func() { p.gatewayAnswered(echo.Message{Content: echo.Content{NoWay: true}}, 0) })
		expect("answers of a gateway without a way on", false)
		time.Sleep(health.GatewaySilence) //nolint:forbidigo // synctest's clock
		expect("answers stay away", true)
	})
}
