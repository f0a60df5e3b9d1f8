package commands

import "github.com/spf13/cobra"

func newImage(env *Env) *cobra.Command {
	cmd := group("image", "Make the container image of the helpers", `The helpers in the clusters run from an image that holds nothing but a liqoctl binary. These commands make it
out of the running binary, without a container runtime. The same binary gives the same digest everywhere.`)
	cmd.AddCommand(newImageSave(env), newImagePush(env))
	return cmd
}
