package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab/guest"
	"liqonet.io/liqonet/lab/progress"
)

func newGuest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "guest",
		Short: "A Linux kernel with WireGuard, Geneve and nftables, for tests",
		Long: `guest runs programs and tests on a user-mode Linux kernel, which is built from Debian's source once, in
some 10 minutes. It boots in half a second, sees this machine's files read-only, and has a network of its own.`,
	}
	cmd.AddCommand(newGuestTest(), newGuestRun(), newGuestBuild())
	return cmd
}

func newGuestBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build the guest's kernel into the cache and print its path",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kernel, err := guest.EnsureKernel(cmd.Context(), progress.New(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), kernel)
			return err
		},
	}
}

func newGuestRun() *cobra.Command {
	var virtualTime bool
	var timeout time.Duration
	var skipped string
	cmd := &cobra.Command{
		Use:   "run -- PROGRAM [ARGUMENT...]",
		Short: "Run a program of this machine in a new guest",
		Long:  `run starts the program as root, in this folder and with this environment. Its exit code is the program's.`,
		Example: `  lab guest run -- ip link add wg0 type wireguard
  lab guest run --virtual-time -- sleep 3600`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// go test ends a test that takes too long by SIGQUIT.
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGQUIT)
			defer stop()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the program did not end within %v", timeout))
				defer cancel()
			}
			kernel, err := guest.EnsureKernel(ctx, progress.New(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			run := func() error {
				return runInGuest(ctx, cmd, guest.Options{Kernel: kernel, Argv: args, VirtualTime: virtualTime})
			}
			if !isTest(args) {
				return run()
			}
			return unlessPassed(skipped, args, kernel, run)
		},
	}
	virtualTimeFlag(cmd, &virtualTime)
	cmd.Flags().StringVar(&skipped, "skipped", "", "do not run a test binary that passed before, and add its folder to this file")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "end the guest after this time; 0: never")
	return cmd
}

// runInGuest runs a program with this program's folder, environment and output.
func runInGuest(ctx context.Context, cmd *cobra.Command, o guest.Options) error {
	var err error
	if o.Init, err = os.Executable(); err != nil {
		return err
	}
	if o.Dir, err = os.Getwd(); err != nil {
		return err
	}
	o.Env, o.Stdout, o.Stderr = os.Environ(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	code, err := guest.Run(ctx, o)
	if err != nil {
		return err
	}
	if code != 0 {
		return exitCode(code)
	}
	return nil
}

func virtualTimeFlag(cmd *cobra.Command, value *bool) {
	cmd.Flags().BoolVar(value, "virtual-time", false,
		"let the guest's clock jump to the next timer whenever nothing runs; what waits in a busy loop hangs")
}
