package incluster

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
)

// maxReport is the maximum length of a termination message in Kubernetes, in bytes.
const maxReport = 4096

// newHelperVerify returns the command that lists remaining state in a node's kernel once.
func newHelperVerify(verify func(remove bool) ([]string, error)) *cobra.Command {
	var remove, rest bool
	var file string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "List the liqonet state in the kernel of a node",
		Args:  cli.Arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rest {
				<-cmd.Context().Done()
				return nil
			}
			left, err := verify(remove)
			if err != nil {
				return err
			}
			if err := os.WriteFile(file, []byte(terminationReport(left)), 0o600); err != nil {
				return fmt.Errorf("report: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&remove, "remove", false, "remove it first")
	flags.BoolVar(&rest, "rest", false, "do nothing until the end")
	flags.StringVar(&file, "report", "/dev/termination-log", "`FILE` to write to")
	return cmd
}

// terminationReport returns as many of the lines as fit; the last line has the number of omitted lines.
func terminationReport(lines []string) string {
	const room = 40 // bytes for the last line
	var b strings.Builder
	for i, line := range lines {
		if b.Len()+len(line)+room > maxReport {
			fmt.Fprintf(&b, "and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
