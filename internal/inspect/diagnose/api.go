package diagnose

import (
	"fmt"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
)

// maxClockSkew is the accepted difference between the clocks of gateways and API server.
const maxClockSkew = time.Minute

func apiChecks() []Check {
	return []Check{
		{
			ID: "LQ-API-REACHABLE", What: "The API server answers within ten seconds.",
			Cause: "The address in the kubeconfig is wrong, a firewall or VPN is in between, or the credentials have expired.",
			Fix:   "kubectl --context CONTEXT version",
			cluster: func(f *facts) outcome {
				if err := f.Errors[observe.Server]; err != nil {
					return failed("%v", err)
				}
				return passed()
			},
		},
		{
			ID: "LQ-API-ANSWERS", What: "The API server answers each request for what the checks read, or refuses it for lack of rights.",
			Needs: []string{"LQ-API-REACHABLE"},
			Cause: "The API server or etcd is overloaded, or being restarted. Checks that need what was not read are skipped.",
			Fix:   "Repeat the command. If it goes on: kubectl --context CONTEXT get --raw '/readyz?verbose'",
			reads: []fact{observe.Server}, cluster: (*facts).answers,
		},
		{
			ID: "LQ-RIGHTS-VIEW", What: "You have the rights of level view, which the other checks need.",
			Needs: []string{"LQ-API-REACHABLE"},
			Cause: "Your account has no role of liqonet in this cluster. Checks that need what is missing are skipped.",
			Fix:   "Ask an administrator to run: liqoctl network role view -n NAMESPACE --context CONTEXT | kubectl --context CONTEXT apply -f -, then the commands that it prints",
			reads: []fact{observe.Rights},
			cluster: func(f *facts) outcome {
				var missing []string
				for _, p := range f.Missing {
					missing = append(missing, "not allowed: "+p)
				}
				return warned(missing)
			},
		},
	}
}

// answers lists the parts that were not read for another reason than a right that the user lacks. Parts for which
// other objects are searched in other namespaces have errors with causes of their own.
func (f *facts) answers() outcome {
	var seen []string
	for _, p := range []observe.Part{observe.Records, observe.Leases, observe.Nodes, observe.Pods, observe.Objects, observe.Keys, observe.Policies} {
		if err := f.Errors[p]; err != nil && !kube.NotAllowed(err) {
			seen = append(seen, fmt.Sprintf("%s: %v", p, err))
		}
	}
	return judged(Failed, seen)
}

// clocks compares the time of reports with the time at which the API server stored them, in whole seconds.
func (f *facts) clocks() outcome {
	var seen []string
	for name, object := range f.ConfigMaps {
		id, _ := records.IdentityOf(name)
		if id.Component != records.ComponentStatus {
			continue
		}
		report, stored := f.Statuses[records.GatewayID{Peering: id.Peering, Number: id.Gateway}], observe.StoredAt(object)
		if report == nil || stored.IsZero() {
			continue
		}
		if skew := report.Time.Sub(stored); skew.Abs() > maxClockSkew {
			seen = append(seen, fmt.Sprintf("the clock of gateway pod %s is %s off", report.Pod, skew.Round(time.Second)))
		}
	}
	return warned(seen)
}

func leftoverChecks() []Check {
	return []Check{
		{
			ID: "LQ-LEFTOVERS-INSTALLATION", What: "liqonet is installed once in the cluster.",
			Cause:   "A second liqonet was installed in another namespace. It cannot work: both need the same port and links of each node.",
			Fix:     "liqoctl network reset --context CONTEXT -n OTHER",
			reads:   []fact{observe.Elsewhere},
			cluster: (*facts).otherInstallations,
		},
		{
			ID: "LQ-LEFTOVERS-PEERING", What: "Every peering of which there are objects or reservations has its record.",
			Needs:   []string{"LQ-API-REACHABLE", "LQ-OBJECTS-INSTALLED"},
			Cause:   "A connect or disconnect was interrupted, or the record was deleted by hand.",
			Fix:     "liqoctl network disconnect PEER --context CONTEXT --one-side removes what is left; liqoctl network connect completes it.",
			reads:   []fact{peerings, observe.Records},
			cluster: (*facts).brokenPeerings,
		},
		{
			ID: "LQ-LEFTOVERS-TEST", What: "No pods of network test remain.",
			Cause:   "A network test runs at this moment, or was killed.",
			Fix:     "The next liqoctl network test removes them, and so does liqoctl network reset.",
			reads:   []fact{observe.Pods},
			cluster: (*facts).testPods,
		},
	}
}

func (f *facts) otherInstallations() outcome {
	if len(f.Others) == 0 {
		return passed()
	}
	return failed("a second installation in namespace %s", strings.Join(f.Others, ", ")).naming("OTHER", f.Others[0])
}

func (f *facts) brokenPeerings() outcome {
	var broken []string
	for _, p := range f.peerings {
		if f.ConfigMaps[records.PeeringName(p.Peer)] == nil {
			broken = append(broken, p.Peer)
		}
	}
	if len(broken) == 0 {
		return passed()
	}
	return failed("no record of peering %s, of which objects or reservations remain", strings.Join(broken, ", ")).naming("PEER", broken[0])
}

func (f *facts) testPods() outcome {
	var names []string
	for _, p := range f.Pods {
		switch p.Labels[records.LabelComponent] {
		case records.ComponentTestServer, records.ComponentTestPod, records.ComponentTestNode:
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return passed()
	}
	return warned([]string{"pods of a test remain: " + strings.Join(names, ", ")})
}
