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
	enumFlag(cmd, &f.overlay, "overlay", "", "encapsulation between nodes and gateways; auto: geneve where all nodes have it, else vxlan",
		automatic, string(records.Geneve), string(records.VXLAN))
	flags := cmd.Flags()
	flags.StringVar(&f.installation.Image, "image", "", "container `IMAGE` of the helpers (default: that of this release; other builds have none)")
	checkText(flags, "image", imageName)
	flags.BoolVar(&f.installation.Update, "update", false, "change what exists and differs")
	flags.BoolVar(&f.installation.SkipValidation, "skip-validation", false, "do not check the permissions first, and go on where packets are known to be lost")
	optionalFlag(cmd, &f.installation.AllowForward, "allow-forward", "on nodes whose firewall drops what it forwards, add rules that accept liqonet's packets (default: as it is)")
	return f
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
