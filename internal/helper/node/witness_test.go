//go:build linux

package node

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/testbed/bubble"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/echo"
)

// TestWitnessRequestsAreLimited checks that a gateway that alternately asks for a witness and does not causes few
// writes of a node: it could do so with all nodes.
func TestWitnessRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		log := slog.New(slog.DiscardHandler)
		l := &loop{probes: newProbes(nil)}
		l.Log = log
		writes := 0
		l.reports = publish.NewReporter(log, sameButDrift, func(context.Context, report) (string, error) {
			writes++
			return "", nil
		}, func(report, string) bool { return true })
		p := &gatewayProbes{witness: witness{news: l.probes.news}}
		l.probes.paths[gatewayKey{id: sample.FirstGateway("b")}] = p
		for _, task := range []func(context.Context){l.reports.Run, l.reportWitness} {
			go task(ctx)
		}
		const span = 10 * time.Minute
		for i := range int(span / time.Second) {
			p.gatewayAnswered(echo.Message{Content: echo.Content{Witness: i%2 == 0}}, 0)
			time.Sleep(time.Second) //nolint:forbidigo // synctest's clock
		}
		if most := publish.NewsBurst + int(span/(10*time.Second)) + 1; writes < 2 || writes > most {
			t.Errorf("%d writes in %s, want %d at most", writes, span, most)
		}
		cancel()
		synctest.Wait()
	})
}

// TestWitnessFault checks what a witness reports, and that it reports each change once.
func TestWitnessFault(t *testing.T) {
	const ms, never = time.Millisecond, -1
	noGateway, noPeer := "no answer from the gateway", "no answer from nodes of the peer"
	for _, test := range []struct {
		name            string
		gateway, proven time.Duration // time since the last answers
		want            string
	}{
		{"all answer", 0, 0, ""},
		{"the gateway, just before the limit", health.GatewaySilence - ms, 0, ""},
		{"the gateway is silent", health.GatewaySilence, 0, noGateway},
		{"the peer, just before the limit", 0, health.ProofSilence - ms, ""},
		{"the peer is silent", 0, health.ProofSilence, noPeer},
		{"both are silent", health.GatewaySilence, health.ProofSilence, noGateway},
		{"no node of the peer has ever answered", 0, never, ""},
	} {
		bubble.Run(t, test.name, func(t *testing.T) {
			news := make(chan struct{}, 1)
			w := witness{news: news, lastAnswer: time.Now().Add(-test.gateway)}
			var proven time.Time
			if test.proven != never {
				proven = time.Now().Add(-test.proven)
			}
			w.check(false, proven)
			if reported := len(news) == 1; w.fault != test.want || reported != (test.want != "") {
				t.Errorf("fault %q, reported %t, want %q", w.fault, reported, test.want)
			}
			w.check(true, proven)
			if !w.asked || len(news) != 1 {
				t.Error("a request of the gateway is not reported")
			}
			<-news
			if w.check(true, proven); len(news) != 0 {
				t.Error("no change is reported")
			}
		})
	}
}
