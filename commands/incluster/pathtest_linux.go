package incluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/pathtest/probe"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/templates"
)

// newHelperTest returns the commands of the pods of `network test`.
func newHelperTest(env *cli.Env) *cobra.Command {
	cmd := cli.Group("test", "Test the paths of a peering", "", "")
	cmd.AddCommand(newHelperTestServe(env), newHelperTestAsk(env))
	return cmd
}

func newHelperTestServe(env *cli.Env) *cobra.Command {
	var token string
	var meter bool
	at := uint16(templates.TestPort)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer probes",
		Args:  cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			address := netip.AddrPortFrom(netip.IPv4Unspecified(), at)
			if !meter {
				return probe.Server{Node: env.Variable("NODE_NAME"), Token: token}.Serve(cmd.Context(), address)
			}
			err := probe.Meter{Token: token}.Serve(cmd.Context(), address)
			if errors.Is(err, syscall.EADDRINUSE) { // on a node: the test reports that there is no answer
				ui.Writef(env.Err, "%s\n", err.Error())
				<-cmd.Context().Done()
				return nil
			}
			return err
		},
	}
	ui.AddFlag(cmd.Flags(), &at, "port", "PORT", "port to listen at", setting.Port)
	cmd.Flags().StringVar(&token, "token", "", "answer those who know this `TOKEN`, and nobody else")
	cmd.Flags().BoolVar(&meter, "meter", false, "answer those who measure, instead of probes")
	return cmd
}

// askFlags are the flags of `helper test ask`.
type askFlags struct {
	probe.Plan
	probe.Measurement

	mtu      int
	fromNode bool
	report   string
}

func newHelperTestAsk(env *cli.Env) *cobra.Command {
	f := askFlags{Plan: probe.Plan{Port: templates.TestPort}}
	cmd := &cobra.Command{
		Use:   "ask",
		Short: "Ask servers in the peer, and report what they answer",
		Args:  cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := f.ask(cmd.Context(), env)
			if err != nil {
				return err
			}
			if err := os.WriteFile(f.report, []byte(text), 0o600); err != nil {
				return fmt.Errorf("report: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	cli.ListFlag(flags, &f.Pods, "pod", "NODE=ADDRESS,...", "servers in the peer", serverPod)
	ui.AddFlag(flags, &f.Service, "service", "ADDRESS:PORT", "Service that leads to them", netip.ParseAddrPort)
	ui.AddFlag(flags, &f.NodePort, "node-port", "PORT", "its port on nodes", setting.Port)
	flags.IntVar(&f.mtu, "mtu", 0, "`BYTES` of the largest packet that crosses whole")
	flags.DurationVar(&f.Hold, "hold", 0, "`DURATION` for which connections are kept open")
	flags.BoolVar(&f.fromNode, "from-node", false, "this runs in the network of a node")
	ui.AddFlag(flags, &f.Meter, "meter", "ADDRESS:PORT", "server to which the path is measured, instead of all else", netip.ParseAddrPort)
	flags.StringVar(&f.Measurement.Token, "token", "", "`TOKEN` of the servers")
	flags.IntVar(&f.Streams, "streams", 1, "`NUMBER` of streams")
	flags.DurationVar(&f.Each, "each", time.Second, "`DURATION` of each part of the measurement")
	flags.StringVar(&f.report, "report", "/dev/termination-log", "`FILE` to write to")
	return cmd
}

func serverPod(text string) (p probe.Pod, err error) {
	node, address, _ := strings.Cut(text, "=")
	p.Node = node
	p.Address, err = netip.ParseAddr(address)
	return p, err
}

// ask does what the flags say, and returns the report.
func (f askFlags) ask(ctx context.Context, env *cli.Env) (string, error) {
	if f.Meter.IsValid() {
		return f.Report(ctx)
	}
	inquiry, err := f.inquiry(env)
	if err != nil {
		return "", err
	}
	return probe.Encode(inquiry.Ask(ctx))
}

// inquiry is what the flags ask on this node.
func (f askFlags) inquiry(env *cli.Env) (q probe.Inquiry, err error) {
	var node, address string
	if err := given(env, map[string]*string{"NODE_NAME": &node, "NODE_IP": &address}); err != nil {
		return q, err
	}
	nodeIP, err := netip.ParseAddr(address)
	if err != nil {
		return q, fmt.Errorf("read $NODE_IP: %w", err)
	}
	f.Plan.Token = f.Measurement.Token
	if !f.fromNode {
		f.NodePort = 0
	}
	if !nodeIP.Is4() { // on a node whose first address is an IPv6 address
		if nodeIP, err = sourceTo(f.Service); err != nil {
			return q, fmt.Errorf("find the IPv4 address of node %s: %w", node, err)
		}
	}
	return probe.Inquiry{Targets: f.Targets(node, nodeIP), MTU: f.mtu, Hold: f.Hold}, nil
}

// sourceTo returns the source address of packets to a destination. It sends none.
func sourceTo(to netip.AddrPort) (netip.Addr, error) {
	conn, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return from.Addr(), err
}
