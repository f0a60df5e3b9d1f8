package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"liqonet.io/liqonet/internal/testbed/require"
)

// TestLogIsBounded checks that repeated messages are bounded, with any attributes, and that other messages are not
// affected.
func TestLogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := New(&out, slog.LevelInfo).With("peering", "b")
		lines := func() (all []map[string]any) {
			for d := json.NewDecoder(&out); d.More(); {
				var one map[string]any
				require.NoError(t, d.Decode(&one))
				all = append(all, one)
			}
			return all
		}
		for i := range 1000 {
			log.Warn("packet not sent", "error", fmt.Sprint(i))
		}
		log.Info("another fact", "text", "two\nlines")
		if all := lines(); len(all) != logBurst+1 || all[logBurst]["msg"] != "another fact" || all[0]["peering"] != "b" {
			t.Errorf("%d lines, the last %v", len(all), all[len(all)-1])
		}
		time.Sleep(logPause) //nolint:forbidigo // synctest's clock
		log.Warn("packet not sent")
		log.Warn("packet not sent")
		if all := lines(); len(all) != 1 || all[0]["leftOut"] != float64(1000-logBurst) {
			t.Errorf("after a pause: %v", all)
		}
		for i := range 10 * logMessages {
			log.Warn(fmt.Sprint("message ", i))
		}
		if n := len(lines()); n > logMessages+logBurst {
			t.Errorf("%d lines of messages that are all different", n)
		}
	})
}
