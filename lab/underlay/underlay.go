// Package underlay is the network below the clusters of a lab: a router namespace with one bridge a cluster,
// the namespaces of control planes and nodes attached to it, and one of a machine beyond it. Node networks route to
// each other; pod networks are known only inside their cluster, in whatever style it has.
package underlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/spec"
)

// uplink is the name, inside a member, of its link to the node network.
const uplink = "eth0"

// loopbackUp is the first command of ip(8) in each namespace.
const loopbackUp = "link set lo up"

// Underlay is the router, its bridges and the machine outside.
type Underlay struct {
	Router  *netns.Namespace
	Outside *netns.Namespace
	tables  map[string]int // the router's, for pods of clusters whose nodes do not hide them, by cluster
}

// Member is a namespace with an address in a node network.
type Member struct {
	Name      string // of its port on the bridge; at most 15 bytes
	Address   netip.Addr
	Namespace *netns.Namespace
}

// New makes the router with a bridge for every cluster, and the machine outside.
func New(s spec.Spec) (*Underlay, error) {
	router, err := netns.New()
	if err != nil {
		return nil, err
	}
	err = errors.Join(ip(router, loopbackUp), setSysctls(router, map[string]string{"net/ipv4/ip_forward": "1"}))
	if err != nil {
		return nil, err
	}
	u := &Underlay{Router: router, tables: make(map[string]int)}
	if u.Outside, err = newOutside(router); err != nil {
		return nil, err
	}
	for _, c := range s.Clusters {
		if err := u.addBridge(c); err != nil {
			return nil, fmt.Errorf("bridge of cluster %s: %w", c.Name, err)
		}
		if !routesPods(c) {
			continue
		}
		if err := u.adopt(c); err != nil {
			return nil, fmt.Errorf("routes to pods of cluster %s: %w", c.Name, err)
		}
	}
	return u, nil
}

// bridgeName is the name of the router's link to the node network of a cluster.
func bridgeName(cluster string) string { return "br-" + cluster }

func (u *Underlay) addBridge(c spec.Cluster) error {
	bridge := bridgeName(c.Name)
	commands := []string{
		fmt.Sprintf("link add %s mtu %d type bridge", bridge, c.MTU),
		fmt.Sprintf("addr add %s/%d dev %s", c.RouterAddress(), c.NodeNetwork.Bits(), bridge),
		"link set " + bridge + " up",
	}
	if c.HasIPv6() {
		commands = append(commands, addIPv6(spec.NodeNetwork6(c.RouterAddress()), bridge))
	}
	return ip(u.Router, commands...)
}

// Attach makes a namespace that is connected to the cluster's node network. A port that an earlier member of
// the same name left is replaced.
func (u *Underlay) Attach(c spec.Cluster, name string, address netip.Addr) (Member, error) {
	ns, err := netns.New()
	if err != nil {
		return Member{}, err
	}
	m := Member{Name: name, Address: address, Namespace: ns}
	if err := u.attach(c, m); err != nil {
		return Member{}, errors.Join(fmt.Errorf("attach %s: %w", name, err), ns.Close())
	}
	return m, nil
}

func (u *Underlay) attach(c spec.Cluster, m Member) error {
	sysctls := map[string]string{
		"net/ipv4/ip_forward": "1",
		// Answers of a pod to its neighbour on the bridge must pass conntrack, where the Service's address is put back.
		"net/bridge/bridge-nf-call-iptables": "1",
	}
	commands := []string{
		loopbackUp,
		fmt.Sprintf("addr add %s/%d dev %s", m.Address, c.NodeNetwork.Bits(), uplink),
		"link set " + uplink + " up",
		fmt.Sprintf("route replace default via %s", c.RouterAddress()),
	}
	if c.HasIPv6() {
		// Packets find no way beyond the router, but without a route there they would not meet kube-proxy's rules.
		sysctls["net/ipv6/conf/all/forwarding"], sysctls["net/bridge/bridge-nf-call-ip6tables"] = "1", "1"
		commands = append(commands, addIPv6(spec.NodeNetwork6(m.Address), uplink),
			fmt.Sprintf("route replace default via %s", spec.NodeNetwork6(c.RouterAddress()).Addr()))
	}
	if err := setSysctls(m.Namespace, sysctls); err != nil {
		return err
	}
	if ip(u.Router, "link show dev "+m.Name) == nil {
		if err := ip(u.Router, "link del dev "+m.Name); err != nil {
			return err
		}
	}
	err := ip(u.Router,
		fmt.Sprintf("link add %s mtu %d type veth peer name %s mtu %d netns %s",
			m.Name, c.MTU, uplink, c.MTU, m.Namespace.Path()),
		fmt.Sprintf("link set %s master %s up", m.Name, bridgeName(c.Name)))
	if err != nil {
		return err
	}
	return ip(m.Namespace, commands...)
}

// addIPv6 is the command that gives a link an address that can be used at once.
func addIPv6(address netip.Prefix, link string) string {
	return fmt.Sprintf("addr add %s dev %s nodad", address, link)
}

// Route makes the member reach ranges, such as another node's pods, by way of a neighbour.
func (m Member) Route(ranges []netip.Prefix, via netip.Addr) error {
	commands := make([]string, len(ranges))
	for i, dst := range ranges {
		commands[i] = fmt.Sprintf("route replace %s via %s", dst, via)
	}
	return ip(m.Namespace, commands...)
}

// setSysctls writes sysctls, by their path below /proc/sys, inside the namespace.
func setSysctls(ns *netns.Namespace, values map[string]string) error {
	return ns.Do(func() error {
		for key, value := range values {
			if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0); err != nil {
				return fmt.Errorf("set sysctl: %w", err)
			}
		}
		return nil
	})
}

// ip runs commands of ip(8) in a namespace, up to the first that fails.
func ip(ns *netns.Namespace, commands ...string) error {
	_, err := execute(ns, strings.Join(commands, "\n")+"\n", "ip", "-batch", "-")
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(commands, "; "), err)
	}
	return nil
}

// execute runs a program in a namespace with some input, and returns its output.
func execute(ns *netns.Namespace, input string, command ...string) (output string, err error) {
	err = ns.Do(func() error {
		cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, bytes.TrimSpace(out))
		}
		output = string(out)
		return nil
	})
	return output, err
}
