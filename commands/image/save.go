package image

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/image"
)

// imageSaveOptions are the options of `image save`.
type imageSaveOptions struct {
	file   string // "-": standard output
	tag    string // "": the default name
	binary string // "": the running one
}

func newImageSave(env *cli.Env) *cobra.Command {
	var o imageSaveOptions
	cmd := &cobra.Command{
		Use:   "save -o FILE",
		Short: "Write the image to an archive",
		Long: `Write the image to an archive that container runtimes can import, for clusters without a registry, and print its name
and digest. Use the name with network connect --image.`,
		Example: `  liqoctl image save -o liqonet.tar

  # Import the image on a node
  liqoctl image save -o - | ssh node ctr --namespace k8s.io images import -`,
		Args: cli.Arguments(),
		RunE: func(*cobra.Command, []string) error { return saveImage(env, o) },
	}
	// Not "output", which chooses a format everywhere else, and may be set so for all commands.
	ui.TextFlag(cmd.Flags(), &o.file, "file,o", "FILE", "archive to write; - is standard output (required)", nil)
	ui.TextFlag(cmd.Flags(), &o.tag, "tag", "NAME:TAG", "name of the image (default: the release's, or one made from the content)", nil)
	ui.TextFlag(cmd.Flags(), &o.binary, "binary", "FILE", "Linux liqoctl binary to build the image from (default: the running one)", nil)
	return cmd
}

func saveImage(env *cli.Env, o imageSaveOptions) error {
	if o.file == "" {
		return cli.Usagef("image save: a file is required: use -o FILE")
	}
	if o.file == "-" && env.OutTerminal {
		return cli.Usagef("image save: standard output is a terminal: use -o FILE, or a pipe")
	}
	img, err := image.Build(o.binary)
	if err != nil {
		return err
	}
	reference := o.tag
	if reference == "" {
		if reference, err = img.Reference(env.Build); err != nil {
			return err
		}
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	name := reference + "@" + digest
	save := func(w io.Writer) error { return img.Save(w, reference) }
	if o.file == "-" {
		env.Progress.Note(name)
		return save(env.Out)
	}
	if err := ui.WriteFile(o.file, 0o644, save); err != nil {
		return err
	}
	_, err = fmt.Fprintln(env.Out, name)
	return err
}
