package inventory

import (
	"fmt"

	"liqonet.io/liqonet/internal/records"
)

// Selector returns a label selector for the objects of one component.
func Selector(component string) string { return records.LabelComponent + "=" + component }

// PeeringSelector returns a label selector for all objects of one peering.
func PeeringSelector(peering string) string { return records.LabelPeering + "=" + peering }

// GatewaysSelector returns a label selector for the pods of a peering's gateways.
func GatewaysSelector(peering string) string {
	return Selector(records.ComponentGateway) + "," + PeeringSelector(peering)
}

// GatewaySelector returns a label selector for the pods of one gateway.
func GatewaySelector(id records.GatewayID) string {
	return fmt.Sprintf("%s,%s=%d", GatewaysSelector(id.Peering), records.LabelGateway, id.Number)
}
