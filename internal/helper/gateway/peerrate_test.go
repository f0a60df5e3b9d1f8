//go:build linux

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	tools "k8s.io/client-go/tools/cache"

	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/testbed/sample"
)

// TestPeerDoesNotSetWriteRate checks that a gateway writes at a fixed rate if the peer sends new nodes continuously,
// roams, and answers intermittently. Each write of a gateway's location makes every node of the cluster run a pass;
// nothing else that the peer sends does.
func TestPeerDoesNotSetWriteRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const minutes = 10
		objects := gatewaysObjects(t, sample.Namespace)
		client := fake.NewClientset(objects[0], objects[1])
		l := &loop{Helper: Helper{Env: helper.Env{Client: client, Namespace: sample.Namespace, Log: slog.New(slog.DiscardHandler)}, ID: sample.FirstGateway("b")}, echoes: &echoes{}}
		l.location, l.status = tools.NewStore(tools.MetaNamespaceKeyFunc), tools.NewStore(tools.MetaNamespaceKeyFunc)
		l.newReporters()
		peers := peerNodes{learned: newLearned(helper.NewMetrics().Ignored, peerNodesMost, peerNodeLife)}
		peers.update(sample.Peering().Peer.ExternalCIDR().Seen)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{}, 2)
		go func() { l.locations.Run(ctx); done <- struct{}{} }()
		go func() { l.statuses.Run(ctx); done <- struct{}{} }()
		node := uint32(0)
		for i := range int(minutes * time.Minute / tunnelEvery) {
			for range 5 { // the maximum for its echoes
				node++
				peers.learn(node)
			}
			g, s := sample.Gateway(), sample.Status()
			g.Endpoint, g.PeerNodes = netip.MustParseAddrPort(fmt.Sprintf("192.0.2.7:%d", 1000+i)), peers.current()
			s.Time, s.Endpoint, s.Loss = publish.Now(), g.Endpoint, float64(i%2)
			l.locations.Set(g)
			l.statuses.Set(report{Status: s})
			time.Sleep(tunnelEvery) //nolint:forbidigo // synctest's clock
		}
		cancel()
		<-done
		<-done
		writes := map[string]int{}
		for _, action := range client.Actions() {
			if patch, ok := action.(clienttesting.PatchAction); ok {
				writes[patch.GetName()]++
			}
		}
		for name, perMinute := range map[string]int{sample.FirstGateway("b").Name(): 6, sample.FirstGateway("b").StatusName(): 30} {
			if most := publish.NewsBurst + minutes*perMinute + 1; writes[name] > most || writes[name] < minutes {
				t.Errorf("%s was written %d times in %d minutes, want at most %d", name, writes[name], minutes, most)
			}
		}
	})
}
