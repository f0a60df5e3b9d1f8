package translate_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	record "liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestRecordOfPage compares the record in docs/services.md, which is an interface for other programs, with the record
// that the examples of this package use.
func TestRecordOfPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/services.md")
	require.NoError(t, err)
	_, block, _ := strings.Cut(string(page), "\n    version:")
	block, _, _ = strings.Cut("    version:"+block, "\n\n")
	text, err := os.ReadFile("testdata/peering-b.yaml")
	require.NoError(t, err)
	var shown, read record.Peering
	for document, to := range map[string]*record.Peering{block: &shown, string(text): &read} {
		if err := yaml.Unmarshal([]byte(document), to); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
	}
	want := record.Peering{Version: record.SchemaVersion, Name: read.Name, Peer: read.Peer, Local: read.Local, Exposed: read.Exposed}
	want.Peer.Name, want.Peer.ClusterID = "", ""
	if diff := cmp.Diff(want, shown, cmp.Comparer(func(a, b record.Mapping) bool { return a == b }),
		cmp.Comparer(func(a, b record.Exposed) bool { return a == b })); diff != "" {
		t.Errorf("the record of the page (-want +got):\n%s", diff)
	}
}
