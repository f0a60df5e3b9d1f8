package ipam

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/ipam/translate"
)

// translationOf reads the records of package translate's tests: cluster a with peer b, and another one whose record
// does not decode.
func translationOf(t *testing.T) func(context.Context) (translate.Cluster, error) {
	t.Helper()
	var texts []string
	for _, file := range []string{"fabric.yaml", "peering-b.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "ipam", "translate", "testdata", file))
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	return func(context.Context) (translate.Cluster, error) {
		return translate.Decode(texts[0], map[string]string{"peering-b": texts[1], "peering-damaged": "version: 7\n"})
	}
}

// runTranslate runs `ipam translate` in cluster a.
func runTranslate(t *testing.T, o translateOptions, stdin string) (string, error) {
	t.Helper()
	var out strings.Builder
	if o.output == "" {
		o.output = ui.FormatText
	}
	if err := o.check(); err != nil {
		return "", err
	}
	err := o.run(t.Context(), &cli.Env{In: strings.NewReader(stdin), Out: &out}, "a", translationOf(t))
	return out.String(), err
}

func TestTranslate(t *testing.T) {
	tests := []struct {
		name        string
		options     translateOptions
		stdin, want string
	}{
		{"a pod of this cluster", translateOptions{peer: "b", addresses: []string{"10.244.1.7"}}, "", "10.72.1.7\n"},
		{"back", translateOptions{peer: "b", reverse: true, addresses: []string{"10.72.1.7", "10.82.0.3"}}, "", "10.244.1.7\n10.80.0.3\n"},
		{"a pod and a node of the peer", translateOptions{peer: "b", imported: true, addresses: []string{"10.244.1.7", "10.70.0.3"}}, "", "10.71.1.7\n10.81.0.3\n"},
		{"back to the peer", translateOptions{peer: "b", imported: true, reverse: true, addresses: []string{"10.71.1.7"}}, "", "10.244.1.7\n"},
		{"lines", translateOptions{peer: "b", file: "-"}, "10.244.1.7\n\n  10.244.2.9  \r\n", "10.72.1.7\n10.72.2.9\n"},
		{
			"whose it is", translateOptions{addresses: []string{"10.71.1.7", "10.81.200.1"}}, "",
			"ADDRESS       TRANSLATED    PEER   KIND\n10.71.1.7     10.244.1.7    b      pod\n10.81.200.1   10.70.200.1   b      exposed\n",
		},
		{
			"all that is known", translateOptions{peer: "b", output: ui.FormatWide, addresses: []string{"10.80.0.3"}}, "",
			"ADDRESS     TRANSLATED   PEER   KIND\n10.80.0.3   10.82.0.3    b      node\n",
		},
		{
			"for programs", translateOptions{peer: "b", output: ui.FormatYAML, addresses: []string{"10.244.1.7"}}, "",
			"addresses:\n- address: 10.244.1.7\n  kind: pod\n  peer: b\n  translated: 10.72.1.7\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := runTranslate(t, tt.options, tt.stdin); err != nil || got != tt.want {
				t.Errorf("%v:\n%s\nwant:\n%s", err, got, tt.want)
			}
		})
	}
}

func TestTranslateRefuses(t *testing.T) {
	tests := []struct {
		name    string
		options translateOptions
		stdin   string
		code    int
		want    string
		hint    string
	}{
		{"an address that belongs nowhere", translateOptions{peer: "b", addresses: []string{"10.244.1.7", "192.0.2.1", "192.0.2.2"}}, "", cli.ExitFailure, "192.0.2.2", "network status"},
		{"an address of this cluster", translateOptions{addresses: []string{"10.244.1.7"}}, "", cli.ExitFailure, "read ConfigMap peering-damaged: ", "restore the object"},
		{"a peer whose record is damaged", translateOptions{peer: "damaged", addresses: []string{"10.244.1.7"}}, "", cli.ExitFailure, `records of cluster "a": read ConfigMap peering-damaged: schema version 7`, "restore the object"},
		{"an unknown peer", translateOptions{peer: "c", addresses: []string{"10.244.1.7"}}, "", cli.ExitFailure, `no peering "c"`, "it has: b"},
		{"a line that is none", translateOptions{peer: "b", file: "-"}, "10.244.1.7\nweb\n", cli.ExitFailure, `line 2: "web"`, ""},
		{"no address", translateOptions{peer: "b"}, "", cli.ExitUsage, "an address is required", ""},
		{"no such address", translateOptions{peer: "b", addresses: []string{"10.244.1.256"}}, "", cli.ExitUsage, "10.244.1.256", ""},
		{"two sources", translateOptions{peer: "b", file: "-", addresses: []string{"10.244.1.7"}}, "", cli.ExitUsage, "mutually exclusive", ""},
		{"slices without a peer", translateOptions{slices: true, file: "-"}, "", cli.ExitUsage, "requires --to or --from", ""},
		{"slices without a file", translateOptions{peer: "b", slices: true}, "", cli.ExitUsage, "-f FILE", ""},
		{"slices back", translateOptions{peer: "b", slices: true, reverse: true, file: "-"}, "", cli.ExitUsage, "requires --to or --from", ""},
		{"what is no slice", translateOptions{peer: "b", slices: true, file: "-"}, "apiVersion: v1\nkind: Service\n", cli.ExitFailure, "v1 Service", ""},
		{"what is no document", translateOptions{peer: "b", slices: true, file: "-"}, "{", cli.ExitFailure, "standard input", ""},
		{"no such file", translateOptions{peer: "b", file: "testdata/nothing"}, "", cli.ExitFailure, "testdata/nothing", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, err := runTranslate(t, tt.options, tt.stdin)
			if out != "" {
				t.Errorf("refused, and yet it printed %q", out)
			}
			if code := cli.ExitCode(t.Context(), err); code != tt.code || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hint.Of(err), tt.hint) {
				t.Errorf("exit code %d, error %v, hint %q", code, err, hint.Of(err))
			}
		})
	}
	t.Run("no installation", func(t *testing.T) {
		o := translateOptions{output: ui.FormatText, addresses: []string{"10.71.1.7"}}
		gone := errors.New("liqonet is not installed")
		err := o.run(t.Context(), &cli.Env{}, "a", func(context.Context) (translate.Cluster, error) { return translate.Cluster{}, gone })
		if !errors.Is(err, gone) {
			t.Error(err)
		}
	})
	var none *inventory.NoPeeringError
	if _, err := runTranslate(t, translateOptions{peer: "c", addresses: []string{"10.244.1.7"}}, ""); !errors.As(err, &none) || none.Context != "a" {
		t.Errorf("unknown peer: %v", err)
	}
}

// TestTranslateSlices accepts slices in every form that kubectl writes, and its output is valid input for kubectl.
func TestTranslateSlices(t *testing.T) {
	const slice = `{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "NAME", "namespace": "shop",
"labels": {"kubernetes.io/service-name": "web"}}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.244.1.7"]}]}`
	one, two := strings.Replace(slice, "NAME", "one", 1), strings.Replace(slice, "NAME", "two", 1)
	bare := strings.NewReplacer(`"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", `, "").Replace(one)
	for name, in := range map[string]string{
		"documents in JSON": one + "\n" + two,
		"documents in YAML": "---\n" + one + "\n---\n\n---\n" + two,
		"a list":            `{"apiVersion": "v1", "kind": "List", "items": [` + one + "," + two + "]}",
		"a typed list":      `{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "items": [` + bare + "," + two + "]}",
	} {
		for _, format := range []ui.Format{ui.FormatText, ui.FormatYAML, ui.FormatJSON} {
			out, err := runTranslate(t, translateOptions{peer: "b", slices: true, file: "-", output: format}, in)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			back, err := readSlices(strings.NewReader(out))
			if err != nil || len(back) != 2 || back[0].Name != "one" || back[1].Name != "two" {
				t.Errorf("%s as %s: %v\n%s", name, format, err, out)
				continue
			}
			for _, s := range back {
				if got := s.Endpoints[0].Addresses[0]; got != "10.72.1.7" || s.Labels["endpointslice.kubernetes.io/managed-by"] != translate.ManagedBy {
					t.Errorf("%s as %s: address %s, labels %v", name, format, got, s.Labels)
				}
			}
		}
	}
	imported, err := runTranslate(t, translateOptions{peer: "b", imported: true, slices: true, file: "-"}, one)
	if err != nil || !strings.Contains(imported, "10.71.1.7") {
		t.Errorf("a slice of the peer: %v\n%s", err, imported)
	}
	broken := strings.Replace(two, "10.244.1.7", "192.0.2.1", 1)
	if out, err := runTranslate(t, translateOptions{peer: "b", slices: true, file: "-"}, one+"\n"+broken); err == nil || out != "" || !strings.Contains(err.Error(), "shop/two") {
		t.Errorf("one of two slices is wrong: %v\n%s", err, out)
	}
}
