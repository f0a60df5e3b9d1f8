package cli

import (
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
)

// lockFlags adds the flags of a command that writes to clusters.
func lockFlags(cmd *cobra.Command, to *kube.LockOptions) {
	flags := cmd.Flags()
	to.Timeout, to.Duration = kube.DefaultLockTimeout, kube.DefaultLockDuration
	ui.AddFlag(flags, &to.Timeout, "lock-timeout", "DURATION", "how long to wait for other runs that write to the same clusters, beside --timeout", ui.PositiveDuration)
	ui.BoolFlag(flags, &to.Break, "break-lock", "take the lock of another run, which then ends: needs the level administer")
	// For tests, in which runs are killed.
	ui.AddFlag(flags, &to.Duration, "lock-duration", "DURATION", "time after which the lock of a run that was killed is taken over", ui.PositiveDuration).Hidden = true
}

// lockHolder returns the identity of a command that other runs see in the lock.
func lockHolder(cmd *cobra.Command) string {
	username, hostname := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		username = u.Username
	}
	if name, err := os.Hostname(); err == nil {
		hostname = name
	}
	_, command, _ := strings.Cut(cmd.CommandPath(), " ")
	return username + "@" + hostname + ": " + command
}
