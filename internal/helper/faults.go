//go:build linux

package helper

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"liqonet.io/liqonet/internal/helper/publish"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/serving"
	"liqonet.io/liqonet/netops"
)

// ErrNoPod means that the pod in a gateway's record does not exist. This is temporary while a pod is replaced.
var ErrNoPod = errors.New("there is no such pod")

// MaxFaults bounds the faults that are logged and counted: a client that may write ConfigMaps can create thousands.
const MaxFaults = 50

// firstTexts returns the first texts, and the number of others.
func firstTexts(texts []string) []string {
	slices.Sort(texts)
	if len(texts) <= MaxFaults {
		return texts
	}
	return append(slices.Clone(texts[:MaxFaults]), fmt.Sprintf("and %d more", len(texts)-MaxFaults))
}

// ReportFaults counts the faults with an object, and logs all if they have changed. Lasting ones become an event: a
// missing pod of a gateway does not last, it happens whenever a pod is replaced.
func (r *Reconciler) ReportFaults(faults []serving.Fault) {
	var texts, lasting []string
	r.Metrics.faults.Reset()
	for i, f := range faults {
		if f.Object != "" && i < MaxFaults {
			r.Metrics.faults.WithLabelValues(f.Object).Set(1)
		}
		if errors.Is(f.Err, ErrWaiting) {
			continue
		}
		texts = append(texts, f.Err.Error())
		if !errors.Is(f.Err, ErrNoPod) {
			lasting = append(lasting, f.Err.Error())
		}
	}
	if texts = firstTexts(texts); slices.Equal(texts, r.faults) {
		return
	}
	if r.faults = texts; len(texts) > 0 {
		r.log.Warn("invalid records; the last valid ones stay in effect", "causes", texts)
	}
	if len(lasting) > 0 {
		r.Event(publish.RecordRefused, strings.Join(firstTexts(lasting), "; "))
	}
}

// Refusals returns the reason for which each peering is not served according to its record: the first one of each that
// lasts.
func Refusals(faults []serving.Fault) map[string]string {
	all := make(map[string]string)
	for _, f := range faults {
		if _, known := all[f.Peering]; !known && f.Peering != "" && !errors.Is(f.Err, ErrNoPod) {
			if reason := netops.Printable(f.Err.Error()); len(all) < records.MaxRefused {
				all[f.Peering] = reason[:min(len(reason), records.MaxReason)]
			}
		}
	}
	return all
}
