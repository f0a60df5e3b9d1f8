package image

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/image"
)

// imagePushOptions are the options of `image push`.
type imagePushOptions struct {
	reference string
	binaries  []string // empty: the running one
}

func newImagePush(env *cli.Env) *cobra.Command {
	var o imagePushOptions
	cmd := &cobra.Command{
		Use:   "push REF",
		Short: "Upload the image to a registry",
		Long: `Upload the image to a registry, with the credentials of the Docker configuration, and print its name and digest. Use the
name with network connect --image.`,
		Example: `  liqoctl image push registry.example.com/liqonet:v1

  # For clusters with nodes of different architectures
  liqoctl image push registry.example.com/liqonet:v1 --binary liqoctl-amd64 --binary liqoctl-arm64`,
		Args: cli.Arguments("REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.reference = args[0]
			return pushImage(cmd.Context(), env, o)
		},
	}
	cmd.Flags().StringArrayVar(&o.binaries, "binary", nil,
		"Linux liqoctl binary `FILE` to build the image from; repeat for several platforms (default: the running one)")
	return cmd
}

func pushImage(ctx context.Context, env *cli.Env, o imagePushOptions) error {
	if !image.IsTag(o.reference) {
		return cli.Usagef("%q %w", o.reference, ui.ErrImage)
	}
	binaries := o.binaries
	if len(binaries) == 0 {
		binaries = []string{""}
	}
	images := make([]*image.Image, len(binaries))
	for i, binary := range binaries {
		var err error
		if images[i], err = image.Build(binary); err != nil {
			return err
		}
	}
	digest, err := image.Push(ctx, o.reference, images...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "%s@%s\n", o.reference, digest)
	return err
}
