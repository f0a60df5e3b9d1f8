//go:build linux

package helper

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/serving"
)

// TestGatewayReportsSomeOfManyFaults bounds the reported faults: with the token of a node, any number of Leases can be
// created.
func TestGatewayReportsSomeOfManyFaults(t *testing.T) {
	var log bytes.Buffer
	l := &Reconciler{Metrics: NewMetrics(), log: slog.New(slog.NewTextHandler(&log, nil)), Event: func(string, string) {}}
	var refused []serving.Fault
	for i := range 10_000 {
		refused = append(refused, serving.Fault{Err: fmt.Errorf("read Lease node-%d: %w", i, errors.New("damaged document"))})
	}
	l.ReportFaults(refused)
	if !strings.Contains(log.String(), "and 9950 more") || log.Len() > 100*MaxFaults {
		t.Errorf("logged %d bytes: %.200s", log.Len(), &log)
	}
}
