package incluster

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/inspect/trace/probe"
)

// newHelperTrace returns the command that network trace runs in the pods of helpers and gateways.
func newHelperTrace(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "trace QUESTION",
		Short: "Report what the kernel does with packets",
		Args:  cli.Arguments("QUESTION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var q probe.Question
			if err := json.Unmarshal([]byte(args[0]), &q); err != nil {
				return fmt.Errorf("read question: %w", err)
			}
			return q.Run(cmd.Context(), env.In, env.Out)
		},
	}
}
