package commands

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/image"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/netops/echo"
	"liqonet.io/liqonet/templates"
)

// automatic is the word by which a flag leaves the choice of an overlay to liqoctl.
const automatic records.OverlayKind = "auto"

// installFlags adds the flags that say how liqonet is installed in a cluster.
func installFlags(cmd *cobra.Command, to *peering.Installation) {
	to.Overlay = automatic
	enumFlag(cmd, &to.Overlay, "overlay", "encapsulation between nodes and gateways; auto: geneve if all nodes support it, else vxlan",
		automatic, records.Geneve, records.VXLAN)
	addFlag(cmd.Flags(), &to.OverlayPort, "overlay-port", "PORT", "UDP port of the overlay on nodes and gateways (default: unchanged, 6091 in a new installation)", overlayPort)
	imageFlag(cmd, &to.Image)
	podFlags(cmd, &to.Pods)
	gatewayPodFlags(cmd, &to.Pods)
	boolFlag(cmd.Flags(), &to.Update, "update", "apply changes to an existing installation")
	boolFlag(cmd.Flags(), &to.SkipValidation, "skip-validation", "skip preflight checks; known incompatibilities become warnings")
	optionalFlag(cmd.Flags(), &to.AllowForward, "allow-forward", "on nodes whose firewall drops forwarded packets, add rules that accept liqonet's (default: leave unchanged)")
}

// allNodesFlag adds the flag that makes a node that does not take part a failure.
func allNodesFlag(cmd *cobra.Command, to *peering.Installation) {
	boolFlag(cmd.Flags(), &to.AllNodes, "all-nodes", "fail if a Ready node cannot be verified, instead of naming it with exit code 3")
}

// otherOverlays are the ports that network plugins use for VXLAN (IANA's, and Linux's own of flannel and Cilium) and
// Geneve. Nodes drop packets to the overlay's port that are no gateway's: the plugin's would be lost.
var otherOverlays = []uint16{4789, 8472, 6081}

// overlayPort reads a port that the overlay can have beside the other sockets of nodes and gateways.
func overlayPort(text string) (uint16, error) {
	n, err := port(text)
	switch {
	case n == echo.Port, n >= templates.TunnelPort && n < templates.TunnelPort+records.MaxGateways:
		return 0, fmt.Errorf("%d is another port of gateways", n)
	case slices.Contains(otherOverlays, n):
		return 0, fmt.Errorf("%d is the port of other overlays", n)
	}
	return n, err
}

func imageFlag(cmd *cobra.Command, to *string) {
	textFlag(cmd.Flags(), to, "image", "IMAGE", "container image of the helpers (default: the image of this release; other builds have none)", imageName)
}

// installation is what the flags ask for, with the default image. It is called last, so that errors in the command line
// come first.
func installation(env *Env, o peering.Installation) (_ peering.Installation, err error) {
	if o.Overlay == automatic {
		o.Overlay = ""
	}
	o.Image, err = imageOrDefault(env, o.Image)
	return o, err
}

// imageOrDefault is the image that the user names, else the default of this build, which only a published release has.
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
