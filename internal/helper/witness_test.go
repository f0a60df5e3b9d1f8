//go:build linux

package helper

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/netops/echo"
)

// TestWitnessRequestsAreLimited checks that a gateway that alternately asks for a witness and does not causes few
// writes of a node: it could do so with all nodes.
func TestWitnessRequestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		log := slog.New(slog.DiscardHandler)
		l := &nodeLoop{probes: newNodeProbes(nil)}
		l.Log = log
		writes := 0
		l.reports = publish.NewReporter(log, sameButDrift, func(context.Context, nodeReport) (string, error) {
			writes++
			return "", nil
		}, func(nodeReport, string) bool { return true })
		p := &gatewayProbes{witness: witness{news: l.probes.news}}
		l.probes.paths[gatewayKey{id: firstGateway("b")}] = p
		for _, task := range []func(context.Context){l.reports.Run, l.reportWitness} {
			go task(ctx)
		}
		const span = 10 * time.Minute
		for i := range int(span / time.Second) {
			p.gatewayAnswered(echo.Message{Content: echo.Content{Witness: i%2 == 0}}, 0)
			time.Sleep(time.Second) //nolint:forbidigo // synctest's clock
		}
		if most := newsBurst + int(span/(10*time.Second)) + 1; writes < 2 || writes > most {
			t.Errorf("%d writes in %s, want %d at most", writes, span, most)
		}
		cancel()
		synctest.Wait()
	})
}
