// Package image has the commands that publish or save the image of the helpers.
package image

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
)

// New returns the group of these commands.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("image", "Build the container image of the helpers", `
Build the container image of the helpers. The image contains only a liqoctl binary; these commands build it from the
running binary, without a container runtime. The same binary always gives the same digest.`, `
  liqoctl image push registry.example.com/liqonet:v1
  liqoctl image save -o liqonet.tar`)
	cmd.AddCommand(newImageSave(env), newImagePush(env))
	return cmd
}
