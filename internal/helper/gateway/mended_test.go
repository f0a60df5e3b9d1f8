//go:build linux

package gateway

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/testbed/sample"
	"liqonet.io/liqonet/netops/membership"
)

// TestMendedAfterRestart checks that a pod that began without its tunnel, for a record that is mended or emptied before
// its first report, takes its tunnel back: nothing else asks the API server then.
func TestMendedAfterRestart(t *testing.T) {
	for name, emptied := range map[string]bool{"mended": false, "emptied": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, client := epochLoop(t, locationOf(t, "two", 200))
				l.Epoch = t.TempDir()
				require.NoError(t, os.WriteFile(filepath.Join(l.Epoch, epochFile), []byte(membership.Epoch(100).String()), 0o600))
				l.echoes.setEpoch(0)
				ctx, cancel := context.WithCancel(t.Context())
				go l.watchSuccessor(ctx) // as in Run: it waits for a claim before begin
				synctest.Wait()
				cm := locationOf(t, "one", 100)
				if emptied {
					cm.Data = nil
				}
				l.begin()
				_, err := client.CoreV1().ConfigMaps(sample.Namespace).Update(ctx, cm, metav1.UpdateOptions{})
				require.NoError(t, err)
				require.NoError(t, l.location.Update(cm))
				time.Sleep(3 * successorEvery) //nolint:forbidigo // synctest's clock
				synctest.Wait()
				if l.echoes.succession().outlived {
					t.Error("the pod stays without its tunnel, and asks nobody")
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
