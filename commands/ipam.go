package commands

import "github.com/spf13/cobra"

func newIPAM(env *Env) *cobra.Command {
	cmd := group("ipam", "Show which addresses a cluster uses for what", "")
	flags := newClusterFlags()
	flags.register(cmd, cmd.PersistentFlags())
	cmd.AddCommand(newIPAMList(env, flags), newIPAMTranslate(env, flags))
	return cmd
}
