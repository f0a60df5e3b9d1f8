package commands

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/graph"
	"liqonet.io/liqonet/internal/status"
)

// drawings are the formats that only a graph has.
var drawings = []string{"mermaid", "dot", "svg", "html"}

func newNetworkGraph(env *Env, local *clusterFlags, read func(context.Context, status.Options) ([]status.Peering, error)) *cobra.Command {
	var o status.Options
	output := formatText
	clusters := twoClusters{local, newRemoteFlags()}
	cmd := &cobra.Command{
		Use:   "graph [PEER]",
		Short: "Draw clusters, gateways, nodes and tunnels",
		Long: `Draw the peerings of a cluster: its gateways, its nodes, and the tunnels to the gateways of the peers, with their state, round
trip and traffic. With a remote cluster the command draws both sides of their peering; a tunnel then has the worse of the two
states. The text is a tree. In clusters of more than 12 nodes, only nodes that are not verified have their names in it.

-o svg and -o html are pictures that load and run nothing; mermaid is for Markdown, dot for Graphviz. -o json has all nodes.
The exit code does not depend on the state: network status has one that does.`,
		Example: `  liqoctl network graph --context a

  # Both sides of a peering, in a browser
  liqoctl network graph --context a --remote-context b -o html > peering.html`,
		Args: arguments("[PEER]"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				o.Peer = args[0]
			}
			if o.Cluster, o.Remote, err = clusters.connectChosen(env); err != nil {
				return err
			}
			all, err := read(cmd.Context(), o)
			if err != nil {
				return err
			}
			return env.draw(graph.Of(all), output)
		},
	}
	clusters.remote.register(cmd, cmd.Flags())
	outputFlag(cmd, &output, drawings...)
	return cmd
}

// draw prints a graph.
func (e *Env) draw(g graph.Graph, output format) error {
	if output.structured() && !slices.Contains(drawings, string(output)) {
		return output.encode(e.Out, g)
	}
	var text string
	switch output {
	case "mermaid":
		text = g.Mermaid()
	case "dot":
		text = g.DOT()
	case "svg":
		text = g.SVG()
	case "html":
		text = g.HTML()
	default:
		var paint func(string) string
		if e.OutTerminal && e.colours() {
			paint = stateColour
		}
		if text = g.Text(paint); text == "" {
			text = "no peerings\n"
		}
	}
	_, err := io.WriteString(e.Out, text)
	return err
}
