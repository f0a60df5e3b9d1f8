package commands

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/image"
)

func newImage(env *Env) *cobra.Command {
	cmd := group("image", "Make the container image of the helpers", `The helpers in the clusters run from an image that holds nothing but a liqoctl binary. These commands make it
out of the running binary, without a container runtime. The same binary gives the same digest everywhere.`)
	cmd.AddCommand(newImageSave(env), newImagePush(env))
	return cmd
}

// binaryFlag adds the flag that names the image's program.
func binaryFlag(cmd *cobra.Command, binary *string) {
	cmd.Flags().StringVar(binary, "binary", "", "liqoctl binary for Linux to put into the image (default: the running one)")
}

// describe is the answer of the image commands: how the image is called, and its digest.
func describe(img *image.Image, reference string) (string, error) {
	digest, err := img.Digest()
	if err != nil {
		return "", err
	}
	return reference + "@" + digest, nil
}
