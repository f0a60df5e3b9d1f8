package network

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/inspect/trace"
	"liqonet.io/liqonet/internal/pathtest"
	"liqonet.io/liqonet/internal/peering"
	"liqonet.io/liqonet/internal/peering/expose"
	"liqonet.io/liqonet/internal/peering/removal"
	"liqonet.io/liqonet/internal/testbed/hostile"
	"liqonet.io/liqonet/internal/testbed/require"
)

func hostilePeering() status.Peering {
	return status.Peering{
		Peer: hostile.Text, Role: hostile.Text, State: health.Down, Reason: hostile.Text, Overlay: status.Overlay{Kind: hostile.Text},
		Gateways: []status.Gateway{{
			Pod: hostile.Text, WireGuard: hostile.Text, Nodes: []status.NodeState{{Name: hostile.Text}}, Tunnels: []status.Tunnel{{Endpoint: hostile.Text}},
		}},
	}
}

func TestTablesObeyNobody(t *testing.T) {
	for output, lines := range map[ui.Format]int{ui.FormatText: 4, ui.FormatWide: 9, ui.FormatJSON: 0, ui.FormatYAML: 0} {
		var b strings.Builder
		o := statusOptions{Options: here(), output: output}
		require.NoError(t, o.print(&b, statusAnswer{Peerings: []status.Peering{hostilePeering()}}))
		if bad := hostile.Obeyed(b.String()); bad != "" {
			t.Errorf("-o %s: a terminal would obey %q in\n%q", output, bad, b.String())
		}
		if got := strings.Count(b.String(), "\n"); lines != 0 && got != lines {
			t.Errorf("-o %s: a forged line:\n%s", output, b.String())
		}
		if output != ui.FormatJSON {
			continue
		}
		var back statusAnswer
		if err := json.Unmarshal([]byte(b.String()), &back); err != nil || back.Peerings[0].Gateways[0].Pod != strings.ToValidUTF8(hostile.Text, "\ufffd") {
			t.Errorf("JSON means something else: %v, %+v", err, back.Peerings)
		}
	}
}

// hostileDiagnosis has a failed check with the same text in each field.
func hostileDiagnosis(text string) diagnose.Result {
	r := hostile.Filled[diagnose.Result](text)
	for i := range r.Checks {
		r.Checks[i].State = diagnose.Failed
	}
	return r
}

// written returns all answers for people by name, with the same text in each field.
func written(text string) map[string]string {
	status, wide := statusOptions{Options: here(), output: ui.FormatText}, statusOptions{Options: here(), output: ui.FormatWide}
	tree, diagram := statusOptions{Options: here(), output: ui.FormatTree}, statusOptions{Options: here(), output: ui.FormatMermaid}
	return map[string]string{
		"init":         described(describeInstallation, hostile.Filled[peering.InitResult](text)),
		"connect":      described(func(b *strings.Builder, c peering.Connection) { describeConnectionWide(b, c, "") }, hostile.Filled[peering.Connection](text)),
		"connect many": described(describeConnections, hostile.Filled[peering.Connections](text)),
		"status many":  described(matrix, hostile.Filled[manyAnswer](text)),
		"disconnect":   described(describeDisconnection, hostile.Filled[removal.Disconnection](text)),
		"reset":        described(resetOrVerified(false), hostile.Filled[removal.ResetResult](text)),
		"no reset":     described(resetOrVerified(false), removal.ResetResult{Removed: removal.Removed{Context: text}}),
		"verify only":  described(resetOrVerified(true), hostile.Filled[removal.ResetResult](text)),
		"expose":       described(describeExposure, hostile.Filled[expose.Exposure](text)),
		"unexpose":     described(describeUnexposure, hostile.Filled[expose.Exposure](text)),
		"test": described(func(b *strings.Builder, r pathtest.Result) {
			describePathsWide(b, r, pathtest.Options{Local: side("a", text).Cluster, Remote: side("b", text).Cluster})
		}, hostile.Filled[pathtest.Result](text)),
		"trace":       described(describeTraceWide, hostile.Filled[trace.Result](text)),
		"short trace": described(describeTrace, hostile.Filled[trace.Result](text)),
		"diagnose":    described(describeDiagnosisWide, hostileDiagnosis(text)),
		"perf":        described(describePerformance, hostile.Filled[pathtest.Result](text)),
		"tree":        hostile.Written(func(w io.Writer) error { return tree.print(w, hostile.Filled[statusAnswer](text)) }),
		"mermaid":     hostile.Written(func(w io.Writer) error { return diagram.print(w, hostile.Filled[statusAnswer](text)) }),
		"status":      hostile.Written(func(w io.Writer) error { return status.print(w, hostile.Filled[statusAnswer](text)) }),
		"changes":     status.changes(time.Now(), statusAnswer{}, hostile.Filled[statusAnswer](text)),
		"wide status": hostile.Written(func(w io.Writer) error { return wide.print(w, hostile.Filled[statusAnswer](text)) }),
	}
}

// TestAnswersObeyNobody: a text of others stays in its place.
func TestAnswersObeyNobody(t *testing.T) { hostile.CheckAnswers(t, written) }
