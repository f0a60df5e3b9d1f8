//go:build linux

package helper

import (
	"liqonet.io/liqonet/netops"
	"liqonet.io/liqonet/netops/echo"
)

// Limited returns a responder that answers no more than all nodes of a cluster send, and to one address no more than
// twice what the kernel accepts from one node. Inside the overlay a node can use another one's address, but it cannot
// exhaust the limit of that node.
func Limited(r echo.Responder) *echo.Responder {
	r.Rate, r.Burst, r.Each = netops.EchoesOfNodes, netops.EchoesOfNodes, 2*netops.EchoesOfNode
	return &r
}
