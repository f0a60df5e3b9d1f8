package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/image"
)

// imagePushOptions are the options of `image push`.
type imagePushOptions struct {
	reference string
	binary    string // "": the running one
}

func newImagePush(env *Env) *cobra.Command {
	var o imagePushOptions
	cmd := &cobra.Command{
		Use:   "push REF",
		Short: "Upload the image to a registry",
		Long: `Upload the image to a registry, with the credentials of the Docker configuration. The image's name and digest
are printed. Use it with network connect --image REF.`,
		Example: `  liqoctl image push registry.example.com/liqonet:v1`,
		Args:    arguments("REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.reference = args[0]
			return pushImage(cmd.Context(), env, o)
		},
	}
	binaryFlag(cmd, &o.binary)
	return cmd
}

func pushImage(ctx context.Context, env *Env, o imagePushOptions) error {
	img, err := image.Build(o.binary)
	if err != nil {
		return err
	}
	if err := img.Push(ctx, o.reference); err != nil {
		return err
	}
	name, err := describe(img, o.reference)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.Out, name)
	return err
}
