package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"liqonet.io/liqonet/commands/ui"
)

// UpstreamName maps flags of Liqo's liqoctl to those that mean the same here.
func UpstreamName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "skip-confirm" {
		name = "yes"
	}
	return pflag.NormalizedName(name)
}

// replacements are flags of Liqo's liqoctl, or the first words of several, with their equivalents here.
var replacements = []struct{ flag, hint string }{
	{"liqo-namespace", "set the namespace of liqonet with --namespace"},
	{"remote-liqo-namespace", "set the namespace of liqonet in the remote cluster with --remote-namespace, on network connect and disconnect"},
	{"disable-sharing-keys", "not needed: connect exchanges public keys; private keys never leave their cluster"},
	{"gw-client-t", "not needed: gateways have no templates; network connect takes --image and --wireguard"},
	{"gw-server-t", "not needed: gateways have no templates; network connect takes --image and --wireguard"},
	{"global-annotations", "not supported: network init and connect take --pod-annotations and --gw-server-service-annotation"},
	{"global-labels", "not supported: network init and connect take --pod-labels"},
	{"skip-confirm", "not needed: this command does not ask"},
	{"skip-validation", "not needed: this command has no preflight checks"},
	{"wait", "not needed: this command returns when it is done"},
	{RemotePrefix, "this command works on one cluster: run it once with --context for each; network connect, disconnect and status take both"},
}

// FlagError explains a flag that a command does not have.
func FlagError(cmd *cobra.Command, err error) error {
	usage := &UsageError{Err: err}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 { // the flag is one of that command
			return unknownCommand(cmd, before[0])
		}
		if near := flagSuggestion(cmd, unknown.GetSpecifiedName()); near != "" {
			usage.Advice = "did you mean --" + near + "?"
			return usage
		}
		for _, r := range replacements {
			if strings.HasPrefix(unknown.GetSpecifiedName(), r.flag) && strings.HasPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" network") {
				usage.Advice = r.hint
				break
			}
		}
	}
	return usage
}

// flagSuggestion returns the flag that is similar to a mistyped name, "" if there is none: cobra's suggestion, with
// flags instead of commands.
func flagSuggestion(cmd *cobra.Command, name string) string {
	flags := Group("", "", "", "")
	flags.SuggestionsMinimumDistance = min(2, len(name)/3) // --peer is not --user
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(Group(f.Name, "", "", ""))
		}
	})
	return suggestion(flags, name)
}

// upstreamFlags accepts flags of Liqo's liqoctl without an effect here, and hides them.
func upstreamFlags(cmd *cobra.Command, names ...string) {
	usages := map[string]string{"wait": "always waits", "yes": "never asks", "skip-validation": "has no preflight checks"}
	for _, name := range names {
		ui.BoolFlag(cmd.Flags(), new(bool), name, "accepted for compatibility: this command "+usages[name]).Hidden = true
	}
}
