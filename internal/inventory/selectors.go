package inventory

import (
	"liqonet.io/liqonet/internal/records"
)

// Selector is a label selector for the objects of one component.
func Selector(component string) string { return records.LabelComponent + "=" + component }

// PeeringSelector is a label selector for all objects of one peering.
func PeeringSelector(peering string) string { return records.LabelPeering + "=" + peering }

// GatewaySelector is a label selector for the pods of a peering's gateway.
func GatewaySelector(peering string) string {
	return Selector(records.ComponentGateway) + "," + PeeringSelector(peering)
}
