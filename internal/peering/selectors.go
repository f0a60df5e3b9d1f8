package peering

import (
	"liqonet.io/liqonet/internal/records"
)

// selector is a label selector for the objects of one component.
func selector(component string) string { return records.LabelComponent + "=" + component }

// peeringSelector is a label selector for all objects of one peering.
func peeringSelector(peering string) string { return records.LabelPeering + "=" + peering }

// gatewaySelector is a label selector for the pods of a peering's gateway.
func gatewaySelector(peering string) string {
	return selector(records.ComponentGateway) + "," + peeringSelector(peering)
}
