package commands

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/image"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
)

// automatic is the word by which a flag leaves a choice to liqoctl.
const automatic = "auto"

// installFlags are the flags that say how liqonet is installed in a cluster.
type installFlags struct {
	overlay      string
	installation peering.Installation
}

func newInstallFlags(cmd *cobra.Command) *installFlags {
	f := &installFlags{overlay: automatic}
	enumFlag(cmd, &f.overlay, "overlay", "encapsulation between nodes and gateways; auto: geneve if all nodes support it, else vxlan",
		automatic, string(records.Geneve), string(records.VXLAN))
	imageFlag(cmd, &f.installation.Image)
	boolFlag(cmd.Flags(), &f.installation.Update, "update", "apply changes to an existing installation")
	boolFlag(cmd.Flags(), &f.installation.SkipValidation, "skip-validation", "skip preflight checks; known incompatibilities become warnings")
	optionalFlag(cmd.Flags(), &f.installation.AllowForward, "allow-forward", "on nodes whose firewall drops forwarded packets, add rules that accept liqonet's (default: leave unchanged)")
	return f
}

func imageFlag(cmd *cobra.Command, to *string) {
	textFlag(cmd.Flags(), to, "image", "IMAGE", "container image of the helpers (default: the image of this release; other builds have none)", imageName)
}

// options returns the installation without an image: see imageOrDefault.
func (f *installFlags) options() peering.Installation {
	o := f.installation
	if f.overlay != automatic {
		o.Overlay = records.OverlayKind(f.overlay)
	}
	return o
}

// imageOrDefault is the image that the user names, else the default of this build, which only a published release has. It
// is called last, so that errors in the command line come first.
func imageOrDefault(env *Env, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	reference, err := image.DefaultReference(env.Build)
	if err != nil {
		return "", &UsageError{Err: err}
	}
	return reference, nil
}
