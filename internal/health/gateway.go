package health

import (
	"fmt"
	"strings"

	"liqonet.io/liqonet/internal/seconds"
)

// Codes of findings about the last report of a gateway.
const (
	APIClock      Code = "LQ-API-CLOCK"
	GatewayReport Code = "LQ-GATEWAY-REPORT"
)

var gatewayKinds = []Kind{
	{
		Code: APIClock,
		What: "The clocks of gateways differ from that of the API server by less than a minute: the time in each gateway's report is " +
			"compared with the time at which the API server stored it.",
		Needs: []string{"LQ-API-REACHABLE"},
		Cause: "A node does not synchronise its clock. Ages in status are wrong; WireGuard refuses handshakes of a clock that was set back.",
		Fix:   "Synchronise the clocks of the nodes (NTP): run timedatectl on the node that is named.",
		late:  true,
		find: func(g *gateway) []Finding {
			if !g.late || g.Status == nil || g.Age >= 0 {
				return nil
			}
			return []Finding{g.lateReport("the gateway's last report is from %s in the future: clocks differ")}
		},
	},
	{
		Code:   "LQ-GATEWAY-RUNNING",
		What:   "The pod of every gateway of the peering is ready.",
		Needs:  []string{"LQ-OBJECTS-INSTALLED", "LQ-OBJECTS-DAMAGED", "LQ-OBJECTS-INTACT", "LQ-OBJECTS-KEYS", "LQ-NODES-READY"},
		Cause:  "A quota, admission or missing room on nodes keeps the pod from being created or scheduled, the image cannot be pulled, or the pod crashes.",
		Fix:    "kubectl --context CONTEXT -n NAMESPACE get pods,events; kubectl --context CONTEXT -n NAMESPACE describe deployment gateway-PEER",
		late:   true,
		cutOff: Warning,
		find: func(g *gateway) []Finding {
			switch {
			case g.Problem == "":
				return nil
			case g.late:
				return []Finding{{Level: levelDown, Text: g.Problem}}
			}
			return []Finding{{Level: levelDegraded, Text: g.Problem}}
		},
	},
	{
		Code:  GatewayReport,
		What:  "Every gateway reports in time.",
		Needs: []string{"LQ-GATEWAY-RUNNING", "LQ-GATEWAY-RECORDS", "LQ-NODES-HELPER", "LQ-NODES-FORWARD"},
		Cause: "The gateway hangs, its node is lost, or it does not reach the API server.",
		Fix:   "kubectl --context CONTEXT -n NAMESPACE logs deployment/gateway-PEER; kubectl --context CONTEXT -n NAMESPACE rollout restart deployment/gateway-PEER",
		late:  true,
		find: func(g *gateway) []Finding {
			switch {
			case g.Status == nil && g.Problem == "":
				return []Finding{{Level: levelConnecting, Text: "the gateway has not reported yet"}}
			case g.Status == nil || !g.late || g.Age < 0:
				return nil
			}
			return []Finding{g.lateReport("the gateway's last report is %s old")}
		},
	},
	{
		Code:   "LQ-GATEWAY-APPLIED",
		What:   "The kernels of the gateways are as the records ask.",
		Needs:  []string{"LQ-GATEWAY-REPORT"},
		Cause:  "The record has a value that the kernel refuses, a name of the server cannot be resolved, or another program locks the kernel's tables.",
		Fix:    "kubectl --context CONTEXT -n NAMESPACE logs deployment/gateway-PEER",
		cutOff: Warning,
		find: func(g *gateway) []Finding {
			if len(g.Status.Failed) == 0 {
				return nil
			}
			return []Finding{{Level: levelDegraded, Text: "gateway: " + strings.Join(g.Status.Failed, "; ")}}
		},
	},
}

// lateReport makes a finding about a report that is late. The age replaces %s in the format.
func (g *gateway) lateReport(format string) Finding {
	return Finding{Level: levelUnknown, Figures: Figures{Age: seconds.Duration(g.Age)}, Text: fmt.Sprintf(format, round(g.Age.Abs()))}
}
