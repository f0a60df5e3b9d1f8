package ipam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/ipam/translate"
)

// translateOptions are the options of `ipam translate`.
type translateOptions struct {
	peer      string // "": derived from the addresses
	imported  bool   // the addresses are the peer's, not this cluster's
	reverse   bool   // the addresses are those at which the other cluster reaches them
	slices    bool   // the input is EndpointSlices, not addresses
	file      string // "": the addresses are arguments; "-": standard input
	output    ui.Format
	addresses []string
}

// translatedAddresses are addresses in the order of the input.
type translatedAddresses struct {
	Addresses []translate.Address `json:"addresses"`
}

func newIPAMTranslate(env *cli.Env, flags *cli.ClusterFlags) *cobra.Command {
	o := translateOptions{output: ui.FormatText}
	var to, from, seenBy string
	cmd := &cobra.Command{
		Use:   "translate [ADDRESS...]",
		Short: "Translate addresses between this cluster and a peer",
		Long: `Translate addresses between this cluster and a peer:

  --to PEER        addresses of this cluster, as the peer reaches them
  --from PEER      addresses of the peer, as this cluster reaches them
  --seen-by PEER   addresses at which the peer reaches this cluster, as they are here
  none of these    addresses at which this cluster reaches peers: the peer, and its own addresses

Give the internal address of a node of this cluster, and the external address of a node of the peer. If an address
belongs to no cluster, the command prints nothing and the exit code is 1.

--endpointslice translates EndpointSlices, which can be applied in the other cluster beside a Service without a selector.`,
		Example: `  # The address at which pods of b reach this pod of a
  liqoctl ipam translate --context a --to b 10.244.1.7

  # The peer that this source address in an access log of a belongs to
  liqoctl ipam translate --context a 10.71.1.7

  # Reflect the endpoints of Service web from a to b
  kubectl --context a get endpointslices -l kubernetes.io/service-name=web -o json |
    liqoctl ipam translate --context a --to b --endpointslice -f - |
    kubectl --context b apply -f -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.addresses = args
			o.peer, o.imported, o.reverse = cmp.Or(to, from, seenBy), from != "", seenBy != ""
			if err := o.check(); err != nil {
				return err
			}
			c, err := flags.Connect(env)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), env, c.Context, func(ctx context.Context) (translate.Cluster, error) {
				if err := c.Reach(ctx); err != nil {
					return translate.Cluster{}, err
				}
				return inventory.Translation(ctx, c)
			})
		},
	}
	flagSet := cmd.Flags()
	ui.TextFlag(flagSet, &to, "to", "PEER", "translate addresses of this cluster to those at which a peer reaches them", nil)
	ui.TextFlag(flagSet, &from, "from", "PEER", "translate addresses of a peer to those at which this cluster reaches them", nil)
	ui.TextFlag(flagSet, &seenBy, "seen-by", "PEER", "translate addresses at which a peer reaches this cluster to those here", nil)
	cmd.MarkFlagsMutuallyExclusive("to", "from", "seen-by")
	ui.BoolFlag(flagSet, &o.slices, "endpointslice", "translate EndpointSlices")
	ui.TextFlag(flagSet, &o.file, "filename,f", "FILE", "addresses, one a line, or EndpointSlices; - is standard input", nil)
	ui.OutputFlag(cmd, &o.output, ui.FormatWide)
	return cmd
}

// check rejects combinations of flags that are empty or conflict.
func (o translateOptions) check() error {
	switch {
	case o.slices && (o.peer == "" || o.reverse):
		return cli.Usagef("ipam translate: --endpointslice requires --to or --from")
	case o.slices && o.file == "":
		return cli.Usagef("ipam translate: --endpointslice requires a file: use -f FILE, or -f -")
	case o.file != "" && len(o.addresses) > 0:
		return cli.Usagef("ipam translate: a file and addresses are mutually exclusive")
	case o.file == "" && len(o.addresses) == 0:
		return cli.Usagef("ipam translate: an address is required")
	}
	return nil
}

// run answers. The input is read first: what cannot be understood needs no cluster. kube is the cluster's context.
func (o translateOptions) run(ctx context.Context, env *cli.Env, api string, load func(context.Context) (translate.Cluster, error)) error {
	if o.slices {
		return o.translateSlices(ctx, env, api, load)
	}
	given, err := o.read(env.In)
	if err != nil {
		return err
	}
	translateOne, err := o.translator(ctx, api, load)
	if err != nil {
		return err
	}
	answer := translatedAddresses{Addresses: make([]translate.Address, 0, len(given))}
	var errs []error
	for _, a := range given {
		translated, err := translateOne(a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		answer.Addresses = append(answer.Addresses, translated)
	}
	if err := errors.Join(errs...); err != nil {
		return hint.With(err, cmp.Or(hint.Of(err), "show the CIDRs of peers with liqoctl network status -o wide"))
	}
	return o.print(env.Out, answer)
}

// translator returns the function that translates an address.
func (o translateOptions) translator(ctx context.Context, api string, load func(context.Context) (translate.Cluster, error)) (func(netip.Addr) (translate.Address, error), error) {
	c, err := load(ctx)
	if err != nil {
		return nil, err
	}
	if o.peer == "" {
		return c.Whose, nil
	}
	t, err := c.Peer(o.peer)
	damaged, isDamaged := errors.AsType[*translate.DamagedError](err)
	switch {
	case isDamaged:
		return nil, fmt.Errorf("records of cluster %q: %w", api, damaged)
	case err != nil:
		return nil, &inventory.NoPeeringError{Context: api, Name: o.peer, Known: c.Peers()}
	case o.imported && o.reverse:
		return t.ImportedFrom, nil
	case o.imported:
		return t.Import, nil
	case o.reverse:
		return t.ExportedFrom, nil
	}
	return t.Export, nil
}

// read returns the addresses of the input: arguments, or lines of a file. It ignores empty lines.
func (o translateOptions) read(stdin io.Reader) (given []netip.Addr, err error) {
	lines := o.addresses
	if o.file != "" {
		text, err := readInput(o.file, stdin)
		if err != nil {
			return nil, err
		}
		lines = strings.Split(string(text), "\n")
	}
	for i, line := range lines {
		line = strings.TrimSpace(line)
		a, err := netip.ParseAddr(line)
		switch {
		case o.file != "" && line == "":
		case o.file != "" && err != nil:
			return nil, fmt.Errorf("read %s: line %d: %q is not an IP address such as 10.244.1.7", o.source(), i+1, line)
		case err != nil:
			return nil, cli.Usagef("%q is not an IP address such as 10.244.1.7", line)
		default:
			given = append(given, a)
		}
	}
	return given, nil
}

// source returns the file's name for errors.
func (o translateOptions) source() string {
	if o.file == "-" {
		return "standard input"
	}
	return o.file
}

// readInput returns the content of a file, or of standard input for "-".
func readInput(name string, stdin io.Reader) ([]byte, error) {
	if name != "-" {
		return os.ReadFile(name)
	}
	text, err := io.ReadAll(stdin)
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return text, nil
}

// print writes only addresses, for scripts, unless the answer is the owner of an address, which has more fields.
func (o translateOptions) print(w io.Writer, answer translatedAddresses) error {
	switch {
	case o.output.Structured():
		return o.output.Encode(w, answer)
	case o.output == ui.FormatText && o.peer != "":
		for _, a := range answer.Addresses {
			ui.Writef(w, "%s\n", a.Translated)
		}
		return nil
	}
	type row = translate.Address
	return ui.Columns[row]{
		{Title: "ADDRESS", Cell: func(a row) string { return a.Given.String() }},
		{Title: "TRANSLATED", Cell: func(a row) string { return a.Translated.String() }},
		{Title: "PEER", Cell: func(a row) string { return a.Peer }},
		{Title: "KIND", Cell: func(a row) string { return string(a.Kind) }},
	}.Print(w, o.output, answer.Addresses)
}
