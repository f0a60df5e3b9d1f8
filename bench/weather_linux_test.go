package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
)

// TestWeather measures a link without loss and, if the kernel has netem, as in a guest, a link that loses a tenth.
func TestWeather(t *testing.T) {
	p := weatherPlan{plan: shortPlan(), streams: 1, lines: []weather{{Name: "calm", qdisc: "pfifo limit 1000"}}}
	p.only = []string{tunnelAlone, liqonetPath}
	p.sample = time.Second
	bad := p.kinds.WireGuard == records.Kernel
	if bad {
		p.lines = append(p.lines, weather{Name: "10% loss", qdisc: "netem loss 10%"})
	}
	var b bytes.Buffer
	var all []weatherReport
	if err := p.measure(t.Context(), t.Output(), func(r weatherReport) error {
		all = append(all, r)
		return r.write(&b)
	}); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &b)
	if rows := strings.Count(b.String(), "\n"); rows != len(p.lines) {
		t.Errorf("%d rows, want %d", rows, len(p.lines))
	}
	for i, r := range all {
		for _, name := range p.only {
			// Each direction loses one in ten; without netem, only packets that the queues of a busy machine cannot
			// hold.
			arrived := r.Metrics[metricUDP].Samples[name][0]
			if lossy := i > 0; arrived <= 0.5 || arrived > 1 || lossy && arrived > 0.98 {
				t.Errorf("%s, %s: a share of %.3f arrives", r.Name, name, arrived)
			}
			if v := r.Metrics[metricTCP].Samples[name][0]; v <= 0 {
				t.Errorf("%s, %s: TCP has %v Mbit/s", r.Name, name, v)
			}
		}
		if len(r.States) == 0 {
			t.Errorf("%s: no state of the peering", r.Name)
		}
	}
	expectNoChildren(t)
}
