package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/image"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/templates"
)

// automatic is the word by which a flag leaves the choice of an overlay to liqoctl.
const automatic records.OverlayKind = "auto"

// InstallFlags adds the flags that say how liqonet is installed in a cluster.
func InstallFlags(cmd *cobra.Command, to *peering.Installation) {
	to.Overlay = automatic
	ui.EnumFlag(cmd, &to.Overlay, "overlay", "encapsulation between nodes and gateways; auto: geneve if all nodes support it, else vxlan",
		automatic, records.Geneve, records.VXLAN)
	ui.AddFlag(cmd.Flags(), &to.OverlayPort, "overlay-port", "PORT", "UDP port of the overlay on nodes and gateways (default 6091)", overlayPort)
	ImageFlag(cmd, &to.Image)
	PodFlags(cmd, &to.Pods)
	gatewayPodFlags(cmd, &to.Pods)
	ui.BoolFlag(cmd.Flags(), &to.Update, "update", "apply changes to an existing installation")
	ui.BoolFlag(cmd.Flags(), &to.SkipValidation, "skip-validation", "turn known incompatibilities into warnings")
	ui.SettingFlag(cmd, setting.Value[*bool]{To: &to.AllowForward, Read: setting.Optional(setting.YesOrNo), Kind: "bool"}, "allow-forward",
		"let liqonet's packets pass node firewalls that drop forwarded packets")
}

// AllNodesFlag adds the flag that makes a node that does not take part a failure.
func AllNodesFlag(cmd *cobra.Command, to *peering.Installation) {
	ui.BoolFlag(cmd.Flags(), &to.AllNodes, "all-nodes", "fail unless every Ready node is verified")
}

// otherOverlays are the ports that network plugins use for VXLAN (IANA's, and Linux's own of flannel and Cilium) and
// Geneve. Nodes drop packets to the overlay's port that are no gateway's: the plugin's would be lost.
var otherOverlays = []uint16{4789, 8472, 6081}

// overlayPort reads a port that the overlay can have beside the other sockets of nodes and gateways.
func overlayPort(text string) (uint16, error) {
	n, err := setting.Port(text)
	switch {
	case n == echo.Port, n >= templates.TunnelPort && n < templates.TunnelPort+records.MaxGateways:
		return 0, fmt.Errorf("%d is another port of gateways", n)
	case slices.Contains(otherOverlays, n):
		return 0, fmt.Errorf("%d is the port of other overlays", n)
	}
	return n, err
}

// ImageFlag adds the flag that names the image of the helpers.
func ImageFlag(cmd *cobra.Command, to *string) {
	ui.TextFlag(cmd.Flags(), to, "image", "IMAGE", "image of the helpers (default: that of this release; other builds: of the installation)", ui.ImageName)
}

// InstalledImageFlag adds the flag that names the image of a command's own pods.
func InstalledImageFlag(cmd *cobra.Command, to *string) {
	ui.TextFlag(cmd.Flags(), to, "image", "IMAGE", "image of the command's pods (default: that of the installation)", ui.ImageName)
}

// Installation is what the flags ask for, with the default image, which only a published release has.
func Installation(env *Env, o peering.Installation) peering.Installation {
	if o.Overlay == automatic {
		o.Overlay = ""
	}
	if o.Image == "" {
		var err error
		if o.Image, err = image.DefaultReference(env.Build); err != nil {
			o.NoImage = &UsageError{Err: err}
		}
	}
	return o
}
