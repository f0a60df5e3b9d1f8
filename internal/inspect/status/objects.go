package status

import (
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
)

// The codes of findings about objects.
const (
	ObjectsIntact       health.Code = "LQ-OBJECTS-INTACT" // an object is missing, or was altered
	ObjectsDamaged      health.Code = "LQ-OBJECTS-DAMAGED"
	ObjectsKeys         health.Code = "LQ-OBJECTS-KEYS"
	ObjectsReservations health.Code = "LQ-OBJECTS-RESERVATIONS"
	GatewayRecords      health.Code = "LQ-GATEWAY-RECORDS"
)

// Kinds returns the kinds of findings about objects, which this package finds.
func Kinds() []health.Kind {
	return []health.Kind{
		{
			Code:  ObjectsDamaged,
			What:  "The records that liqoctl writes can be read: ConfigMaps fabric, ipam and peering-PEER.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "The text or a label of the ConfigMap was edited by hand or by another program. No command overwrites it, and traffic goes on as before.",
			Fix:   "Correct what is named, or restore it from a backup: kubectl --context CONTEXT -n NAMESPACE edit configmap OBJECT",
		},
		{
			Code:  ObjectsIntact,
			What:  "All objects of the installation and of the peering exist, and are as liqoctl made them.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "An object was deleted or edited by hand, by another controller, or by a restore of etcd. Tunnels that are open go on without their Service, new ones do not begin; without admission policies and their bindings, helpers have more rights than they need.",
			Fix:   health.Update,
		},
		{
			Code:  ObjectsKeys,
			What:  "The keys in the Secrets of the peering's gateways are WireGuard keys.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "The Secret was edited by hand, or filled by another program.",
			Fix:   "Delete the Secret that is named: kubectl --context CONTEXT -n NAMESPACE delete secret NAME. Then " + health.Update + " makes new keys.",
		},
		{
			Code:  ObjectsReservations,
			What:  "Address reservations agree with the peerings and with the ranges that the cluster has now.",
			Needs: []string{"LQ-OBJECTS-INSTALLED"},
			Cause: "A command was interrupted, ConfigMap ipam was edited, or the cluster's own ranges have changed.",
			Fix: "liqoctl network init --context CONTEXT --update: it reserves what is missing, and releases what the cluster has no more. " +
				"For others the finding has the command.",
		},
		{
			Code:  GatewayRecords,
			What:  "What the gateway writes can be read: its ConfigMaps gateway-PEER and status-PEER.",
			Needs: []string{"LQ-GATEWAY-RUNNING"},
			Cause: "The ConfigMap was edited by hand or by another program, and the gateway, which writes it anew, has not done so yet.",
			Fix:   "Repeat the command after ten seconds. If it goes on: kubectl --context CONTEXT -n NAMESPACE rollout restart deployment/gateway-PEER",
		},
	}
}

// shared lists what is wrong with the records of the installation.
func (v *view) shared() (findings []health.Finding) {
	if v.Damaged[records.IPAMName] != nil || len(v.Peerings) > 0 {
		findings = v.lacking(records.IPAMName)
	}
	return append(findings, v.lacking(records.FabricName)...)
}

// lacking returns a finding if a record is missing or cannot be read.
func (v *view) lacking(name string) []health.Finding {
	id, _ := records.IdentityOf(name)
	switch problem := v.Problem(name); {
	case problem == "":
		return nil
	case v.Damaged[name] == nil:
		return []health.Finding{health.OfObject(ObjectsIntact, problem)}
	case id.Component == records.ComponentGateway || id.Component == records.ComponentStatus:
		f := health.OfObject(GatewayRecords, problem)
		f.Subject.Gateway = id.Gateway
		return []health.Finding{f}
	default:
		return []health.Finding{health.OfObject(ObjectsDamaged, problem)}
	}
}

// altered returns findings about the records, objects and keys of a peering that are missing, or differ from the
// desired ones.
func (v *view) altered(p *peeringView, installed existing) ([]health.Finding, error) {
	if p.record == nil {
		return p.records, nil // the desired objects are unknown
	}
	objects, err := installed.alteredGateways(v.Namespace, *p.record)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(p.records, v.unreserved(*p.record), objects)
	for _, id := range p.record.GatewayIDs() {
		all = append(all, v.alteredKeys(id)...)
	}
	return all, nil
}

// alteredKeys returns a finding about a gateway's keys; none if the user may not read them.
func (v *view) alteredKeys(id records.GatewayID) []health.Finding {
	name := id.KeysName()
	switch key, ok := v.Keys[name]; {
	case v.Errors[observe.Keys] != nil:
		return nil
	case !ok:
		return []health.Finding{health.OfObject(ObjectsIntact, "Secret "+name+" is missing")}
	case key.Err != nil:
		return []health.Finding{health.OfObject(ObjectsKeys, fmt.Sprintf("Secret %s cannot be read: %v", name, key.Err))}
	}
	return nil
}

// unreserved returns a finding about each range of a peering that is not reserved.
func (v *view) unreserved(p records.Peering) (findings []health.Finding) {
	if v.Registry == nil {
		return nil
	}
	for _, r := range (choose.State{Registry: v.Registry, Fabric: v.Fabric}).Unreserved(p) {
		findings = append(findings, health.OfObject(ObjectsReservations, fmt.Sprintf("ConfigMap %s does not reserve %s, %s", records.IPAMName, r.Range, r.Use())))
	}
	return findings
}
