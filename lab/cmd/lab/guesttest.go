package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab/guest"
	"liqonet.io/liqonet/lab/progress"
)

// guestTest are the flags of "lab guest test".
type guestTest struct {
	where       kernelChoice
	run         string
	verbose     bool
	virtualTime bool
	again       bool
}

func newGuestTest() *cobra.Command {
	o := guestTest{where: kernelAuto}
	cmd := &cobra.Command{
		Use:   "test PACKAGE... [-- FLAG-OF-GO-TEST...]",
		Short: "Run Go tests in guests, one for each package",
		Long: `test is "go test" whose test binaries run in guests, as root, with every overlay and every implementation
of WireGuard. Packages are named as for go test, in this folder's module. A machine whose own kernel has
WireGuard and Geneve is used instead, unless --kernel says otherwise.

If the same tests of a package have passed before in a guest, and neither their binary and testdata nor the guest have
changed since, none is run; --again runs them all the same.`,
		Example: `  lab guest test --run 'TestPath/geneve' -v ./netops
  lab guest test ./netops/...
  lab guest test --virtual-time --run Timers ./netops/tunnel/wireguard
  lab guest test ./netops -- -short -json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.test(cmd, args) },
	}
	cmd.Flags().Var(&o.where, "kernel", "where tests run: guest, host (this machine's kernel), or auto")
	cmd.Flags().StringVar(&o.run, "run", "", "run only tests that match this expression, as for go test")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "name every test")
	cmd.Flags().BoolVar(&o.again, "again", false, "run tests that passed before, though nothing has changed since")
	virtualTimeFlag(cmd, &o.virtualTime)
	return cmd
}

// Variables that select the drivers that tests use.
const (
	overlaysVariable  = "LIQONET_TEST_OVERLAYS"
	wireguardVariable = "LIQONET_TEST_WIREGUARD"
)

// virtualTag is the build tag of tests that need virtual time.
const virtualTag = "virtualtime"

// virtualTimeout is how long, by this machine's clock, the tests of a package may take in virtual time.
const virtualTimeout = 5 * time.Minute

func (o guestTest) test(cmd *cobra.Command, args []string) error {
	// The guest's programs add to this file the packages whose tests they did not run.
	skipped, err := os.CreateTemp("", "liqonet-skipped-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(skipped.Name()) }()
	defer skipped.Close()
	goTest, err := o.arguments(cmd, args, skipped.Name())
	if err != nil {
		return err
	}
	c := exec.CommandContext(cmd.Context(), "go", goTest...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	for name, value := range map[string]string{overlaysVariable: "geneve vxlan", wireguardVariable: "kernel userspace"} {
		if os.Getenv(name) == "" {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	c.Stdout, c.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := c.Run(); err != nil {
		if c.ProcessState.Exited() {
			return exitCode(c.ProcessState.ExitCode())
		}
		return fmt.Errorf("go test: %w", err)
	}
	_, err = io.Copy(cmd.OutOrStdout(), skipped)
	return err
}

// arguments returns the arguments of go. With -exec it runs test binaries by "lab guest run", which decides whether one
// has passed before; on this machine's kernel go does.
func (o guestTest) arguments(cmd *cobra.Command, args []string, skipped string) ([]string, error) {
	inGuest := o.where == kernelGuest || o.virtualTime
	if o.where == kernelAuto && !inGuest {
		enough, err := guest.HostSuffices()
		if err != nil {
			return nil, err
		}
		inGuest = !enough
	}
	out := []string{"test"}
	if inGuest || o.again {
		out = append(out, "-count=1")
	}
	if inGuest {
		// The kernel is built before go test runs two guests, and here its progress is visible.
		if _, err := guest.EnsureKernel(cmd.Context(), progress.New(cmd.ErrOrStderr())); err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		words := []string{self, "guest", "run"}
		if !o.again {
			words = append(words, "--skipped="+skipped)
		}
		if o.virtualTime {
			// The timeout of go test would count virtual time in the guest, and this machine's outside.
			words = append(words, "--virtual-time", "--timeout="+virtualTimeout.String())
			out = append(out, "-tags="+virtualTag, "-timeout=0")
		}
		// The same code makes the same binary in every folder.
		out = append(out, "-trimpath", "-buildvcs=false", "-exec="+quoted(append(words, "--")))
	}
	if o.run != "" {
		out = append(out, "-run="+o.run)
	}
	if o.verbose {
		out = append(out, "-v")
	}
	return append(out, args...), nil
}

// quoted quotes words for go's flags. Words may contain spaces, but no quotes.
func quoted(words []string) string {
	out := make([]string, 0, len(words))
	for _, w := range words {
		out = append(out, "'"+w+"'")
	}
	return strings.Join(out, " ")
}

// kernelChoice selects the kernel of tests.
type kernelChoice string

const (
	kernelAuto  kernelChoice = "auto"
	kernelGuest kernelChoice = "guest"
	kernelHost  kernelChoice = "host"
)

// Set implements pflag.Value.
func (k *kernelChoice) Set(text string) error {
	switch c := kernelChoice(text); c {
	case kernelAuto, kernelGuest, kernelHost:
		*k = c
		return nil
	}
	return fmt.Errorf("want %s, %s or %s", kernelAuto, kernelGuest, kernelHost)
}

// String implements pflag.Value.
func (k *kernelChoice) String() string { return string(*k) }

// Type implements pflag.Value.
func (k *kernelChoice) Type() string { return "KERNEL" }
