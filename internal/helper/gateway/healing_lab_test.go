//go:build linux && lab

package gateway

import (
	"testing"
	"time"

	"liqonet.io/liqonet/internal/testbed/sample"
)

// healingLimit is the time within which external changes to a gateway's object are undone: usually two seconds. A busy
// machine needs longer.
const healingLimit = 5 * time.Minute

// TestLabGatewayObjects deletes and alters the objects that a gateway's helper writes, in a real API server: there,
// labels remove an object from a watch.
func TestLabGatewayObjects(t *testing.T) {
	const namespace = "healing-gateway"
	healGateway(t, sample.Real(t, namespace), namespace, healingLimit)
}
