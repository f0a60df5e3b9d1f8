package image

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/image"
)

func newImagePush(env *cli.Env) *cobra.Command {
	var binaries []string // empty: the running one
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
			return pushImage(cmd.Context(), env, args[0], binaries)
		},
	}
	cmd.Flags().StringArrayVar(&binaries, "binary", nil,
		"Linux liqoctl binary `FILE` to build the image from; repeat for several platforms (default: the running one)")
	return cmd
}

func pushImage(ctx context.Context, env *cli.Env, reference string, binaries []string) error {
	if !image.IsTag(reference) {
		return cli.Usagef("%q %w", reference, ui.ErrImage)
	}
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
	digest, err := image.Push(ctx, reference, images...)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Out, "%s@%s\n", reference, digest)
	return err
}
