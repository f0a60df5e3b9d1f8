package network

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/peering"
)

// renderFlags select where the objects are written.
type renderFlags struct {
	side    place
	dir     string
	secrets bool
}

func newRender(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
	f := renderFlags{side: localPlace}
	cmd := &cobra.Command{
		Use:   "render",
		Short: "Print the manifests of a peering",
		Long: `Print the manifests that network connect would apply, for GitOps. By default the objects of the local cluster go to
standard output; --dir writes those of both clusters, a file for each object in a folder for each cluster. The order is
the order in which they can be applied.

Both clusters are read. If they are not connected yet, set the values that connect would measure: --overlay, --mtu and
the server's endpoint. Secrets are omitted, unless --with-secrets is given, which also generates
the keys that are missing. Apply the manifests to both clusters, then wait with network status --wait, or verify with
network connect, which changes nothing then.`,
		Example: `  # Manifests of both clusters, with new keys
  liqoctl network render --context a --remote-context b --with-secrets --dir peering --overlay vxlan --mtu 1400 --gw-server-service-type NodePort --gw-server-service-nodeport 30840
  kubectl --context a apply -f peering/a && kubectl --context b apply -f peering/b

  # What connect left in a cluster
  liqoctl network render --context a --remote-context b`,
		Args: cli.Arguments(),
	}
	flags := newConnectFlags(cmd, local)
	cli.TimeoutFlag(cmd.Flags(), &flags.Timeout)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o, err := flags.options(env)
		if err != nil {
			return err
		}
		return f.render(cmd.Context(), env, peering.RenderOptions{ConnectOptions: o, WithSecrets: f.secrets})
	}
	ui.EnumFlag(cmd, &f.side, "side", "cluster whose objects are printed", localPlace, remotePlace)
	ui.TextFlag(cmd.Flags(), &f.dir, "dir", "FOLDER", "folder to write the objects of both clusters to", nil)
	ui.BoolFlag(cmd.Flags(), &f.secrets, "with-secrets", "include the keys, and generate missing ones; needs --dir")
	return cmd
}

func (f *renderFlags) render(ctx context.Context, env *cli.Env, o peering.RenderOptions) error {
	if o.WithSecrets && f.dir == "" {
		return cli.Usagef("--with-secrets needs --dir: the keys of the two clusters belong together")
	}
	local, remote, err := peering.Render(ctx, o, env.Progress)
	if err != nil {
		return err
	}
	env.Progress.Stop()
	if f.dir == "" {
		shown := map[place]peering.Manifests{localPlace: local, remotePlace: remote}[f.side]
		return ui.Manifests(env.Out, ui.FormatYAML, shown.Objects)
	}
	for _, m := range []peering.Manifests{local, remote} {
		dir := filepath.Join(f.dir, m.Cluster)
		others, err := writeManifests(dir, m)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(env.Err, "%d objects in %s\n", len(m.Objects), ui.VisibleCell(dir)); err != nil {
			return err
		}
		if len(others) > 0 {
			env.Progress.Warn(fmt.Sprintf("%s contains other manifests: %s", dir, strings.Join(others, ", ")),
				"delete those of an earlier rendering: they would be applied too")
		}
	}
	return nil
}

// writeManifests writes a file for each object. The names are sorted in the order in which to apply the objects. others
// are manifests in the folder that it has not written.
func writeManifests(dir string, m peering.Manifests) (others []string, err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	written := make(map[string]bool)
	for i, object := range m.Objects {
		about, _ := object["metadata"].(map[string]any)
		name := strings.NewReplacer(":", "-", "/", "-").Replace(fmt.Sprintf("%02d-%v-%v.yaml", i+1, object["kind"], about["name"]))
		name = strings.ToLower(name)
		written[name] = true
		err := ui.WriteFile(filepath.Join(dir, name), 0o600, func(w io.Writer) error { return ui.FormatYAML.Encode(w, object) })
		if err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".yaml" && !written[e.Name()] {
			others = append(others, e.Name())
		}
	}
	return others, err
}
