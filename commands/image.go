package commands

import "github.com/spf13/cobra"

func newImage(env *Env) *cobra.Command {
	cmd := group("image", "Build the container image of the helpers", `
Build the container image of the helpers. The image contains only a liqoctl binary; these commands build it from the
running binary, without a container runtime. The same binary always gives the same digest.`, `
  liqoctl image push registry.example.com/liqonet:v1
  liqoctl image save -o liqonet.tar`)
	cmd.AddCommand(newImageSave(env), newImagePush(env))
	return cmd
}
