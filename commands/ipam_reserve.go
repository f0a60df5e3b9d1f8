package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/store"
)

// reserveFlags are the flags and the argument of `ipam reserve`.
type reserveFlags struct {
	owner  string // "": the cluster itself
	shared bool
	output format
}

func newIPAMReserve(env *Env, connect connector) *cobra.Command {
	f := reserveFlags{output: formatText}
	cmd := &cobra.Command{
		Use:   "reserve CIDR",
		Short: "Keep an address range for something else than peers",
		Long: `Keep an address range for something else than peers: a VPN, a data centre, a test. It is refused when others hold
any of these addresses, and they are named. Reserving again what is held changes nothing.`,
		Example: `  liqoctl ipam reserve 10.9.0.0/16
  liqoctl ipam reserve 10.9.0.0/16 --owner vpn`,
		Args: arguments("CIDR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := f.reservation(args[0])
			if err != nil {
				return err
			}
			c, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), env, c, want)
		},
	}
	ownerFlag(cmd, &f.owner, "`NAME` of who needs the range (default: the cluster itself)")
	cmd.Flags().BoolVar(&f.shared, "shared", false, "allow overlap with other shared ranges, such as those of nodes and pods")
	enumFlag(cmd, &f.output, "output", "o", "how to print the reservation", formatText, formatWide, formatJSON, formatYAML)
	return cmd
}

// ownerFlag adds the flag that names the owner of a reservation.
func ownerFlag(cmd *cobra.Command, value *string, usage string) {
	cmd.Flags().StringVar(value, "owner", "", usage)
}

func (f *reserveFlags) reservation(cidr string) (ipam.Reservation, error) {
	want := ipam.Reservation{Owner: ipam.Cluster, Purpose: ipam.Reserved, Shared: f.shared}
	var err error
	if want.Range, err = parsePrefix(cidr); err != nil {
		return want, usagef("%w", err)
	}
	if f.owner != "" {
		if want.Owner, err = userOwner(f.owner); err != nil {
			return want, err
		}
	}
	if err := want.Validate(); err != nil {
		return want, usagef("%w", err)
	}
	return want, nil
}

// userOwner is the owner of that name, as --owner takes it.
func userOwner(name string) (ipam.Owner, error) {
	owner := ipam.User(name)
	if err := owner.Validate(); err != nil {
		return owner, usagef("--owner: %q is not a name of letters, digits, '-', '.' and '_'", name)
	}
	return owner, nil
}

func (f *reserveFlags) run(ctx context.Context, env *Env, c *cluster.Cluster, want ipam.Reservation) error {
	err := store.New(c.Kube, c.Namespace).Update(ctx, func(r *ipam.Registry) error { return r.Reserve(want) })
	if err != nil {
		return explainReservation(c, err)
	}
	return printReservation(env, f.output, want)
}

// explainReservation adds to an error of the registry or its store what the user can do.
func explainReservation(c *cluster.Cluster, err error) error {
	conflict, conflicts := errors.AsType[*ipam.ConflictError](err)
	switch {
	case conflicts:
		err = withHint(err, "what holds it: liqoctl ipam show "+conflict.Held.Range.String())
	case errors.Is(err, ipam.ErrNoneFree):
		err = withHint(err, "free ranges with liqoctl ipam release, or take them of others: liqoctl network init --pool CIDR,... --update")
	case apierrors.IsNotFound(err):
		err = withHint(err, "install liqonet first: liqoctl network init")
	}
	return fmt.Errorf("addresses of cluster %q: %w", c.Context, err)
}

// printReservation prints a range, and nothing else unless the output is to tell all about it.
func printReservation(env *Env, output format, r ipam.Reservation) error {
	if output == formatJSON || output == formatYAML {
		return output.encode(env.Out, r)
	}
	return printReservations(env, output, []ipam.Reservation{r})
}

// printReservations prints ranges, one a line, or all about them.
func printReservations(env *Env, output format, reservations []ipam.Reservation) error {
	switch output {
	case formatText:
		for _, r := range reservations {
			if _, err := fmt.Fprintln(env.Out, r.Range); err != nil {
				return err
			}
		}
		return nil
	case formatWide:
		return table(env.Out, reservationRows(reservations, output))
	}
	return output.encode(env.Out, append([]ipam.Reservation{}, reservations...)) // a list even when there is none
}

// reservationRows are the rows of a table of reservations.
func reservationRows(reservations []ipam.Reservation, output format) [][]string {
	heading := []string{"RANGE", "USED FOR", "REAL RANGE"}
	if output == formatWide {
		heading = append(heading, "OWNER", "PURPOSE", "SHARED")
	}
	rows := [][]string{heading}
	for _, r := range reservations {
		row := []string{r.Range.String(), r.Use(), orDash(prefix{&r.Real}.String())}
		if output == formatWide {
			row = append(row, string(r.Owner), string(r.Purpose), yesOrNo(r.Shared))
		}
		rows = append(rows, row)
	}
	return rows
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
