package underlay

import (
	"errors"
	"fmt"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/spec"
)

// outsidePort is the router's link to the machine outside.
const outsidePort = "outside"

// newOutside makes a machine beyond the router, in no cluster's node network. Nodes reach it by the router.
func newOutside(router *netns.Namespace) (*netns.Namespace, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	bits := spec.OutsideNetwork.Bits()
	commands := []string{loopbackUp, "link set " + uplink + " up"}
	for _, a := range spec.OutsideHosts() {
		commands = append(commands, fmt.Sprintf("addr add %s/%d dev %s", a, bits, uplink))
	}
	err = ip(router,
		fmt.Sprintf("link add %s type veth peer name %s netns %s", outsidePort, uplink, ns.Path()),
		fmt.Sprintf("addr add %s/%d dev %s", spec.OutsideRouter(), bits, outsidePort),
		"link set "+outsidePort+" up")
	if err == nil {
		err = ip(ns, append(commands, fmt.Sprintf("route add default via %s", spec.OutsideRouter()))...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach the machine outside: %w", err), ns.Close())
	}
	return ns, nil
}
