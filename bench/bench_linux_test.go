package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/bench/path"
	"liqonet.io/liqonet/bench/report"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
	"liqonet.io/liqonet/internal/testbed/require"
)

// TestMain also runs the processes of the paths.
func TestMain(m *testing.M) {
	process.Main(path.Run)
	os.Exit(m.Run())
}

// shortPlan measures briefly, with the overlay and WireGuard that this kernel supports.
func shortPlan() plan {
	return plan{kinds: clusters.TestedKinds()[0], rounds: 1, sample: 200 * time.Millisecond}
}

// TestEveryPath sends every kind of traffic over every path, with longer samples at each attempt: a busy machine may
// stop for the length of a short sample.
func TestEveryPath(t *testing.T) {
	p := shortPlan()
	const attempts = 4
	r, err := p.run(t.Context(), t.Output())
	for attempt := 1; err != nil && attempt < attempts; attempt++ {
		t.Logf("samples of %v: %v", p.sample, err)
		p.sample *= 3
		r, err = p.run(t.Context(), t.Output())
	}
	require.NoError(t, err)
	want := []string{tunnelAlone, ownTunnel, baseline, liqoModel, liqonetPath, twoGateways}
	ratios := len(aims) - 2 // the model with the MTU of the others is measured only by name
	if p.kinds.WireGuard == records.Kernel {
		want = []string{tunnelAlone, baseline, liqoModel, liqonetPath, twoGateways}
		ratios--
	}
	assert.Equal(t, "paths", want, r.Paths)
	if len(r.Ratios) != ratios {
		t.Errorf("%d ratios, want %d", len(r.Ratios), ratios)
	}
	for _, m := range r.Metrics {
		for _, name := range r.Paths {
			if v := m.Samples[name]; len(v) != 1 || v[0] <= 0 {
				t.Errorf("%s of %s: samples %v, want one that is more than nothing", m.Name, name, v)
			}
		}
	}
	expectNoChildren(t)
}

// TestInterrupt interrupts a long measurement.
func TestInterrupt(t *testing.T) {
	p := shortPlan()
	p.only, p.sample = []string{ownTunnel, tunnelAlone}, time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := p.run(ctx, writerFunc(func([]byte) { cancel() })); err == nil {
		t.Error("an interrupted measurement has a result")
	}
	expectNoChildren(t)
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// expectNoChildren checks that a run has left no processes.
func expectNoChildren(t *testing.T) {
	t.Helper()
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); !errors.Is(err, unix.ECHILD) {
		t.Errorf("processes are left: wait returns %d, %v", pid, err)
	}
}

func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("-overlay geneve -wireguard kernel -rounds 3 -sample 1s -only liqonet,tunnel -o json"), io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "paths", []string{"liqonet", "tunnel"}, o.plan.only)
	if want := (clusters.Kinds{Overlay: records.Geneve, WireGuard: records.Kernel}); o.plan.kinds != want {
		t.Errorf("kinds %v, want %v", o.plan.kinds, want)
	}
	if o.plan.rounds != 3 || o.plan.sample != time.Second || !o.json {
		t.Errorf("options %+v", o)
	}
	for _, wrong := range []string{"more", "-rounds 0", "-sample -1s", "-o yaml"} {
		if o, err := parse(strings.Fields(wrong), io.Discard); err == nil {
			t.Errorf("%q is taken as %+v", wrong, o)
		}
	}
}

// TestGuestReport decodes the report of a guest.
func TestGuestReport(t *testing.T) {
	want := []report.Report{{Kernel: "Linux 6.12", Paths: []string{"tunnel"}, Metrics: []report.Metric{
		{Name: "TCP", Unit: "Mbit/s", Samples: map[string][]float64{"tunnel": {1, 2}}},
	}}}
	var written bytes.Buffer
	require.NoError(t, (options{json: true}).write(&written, want))
	dir := t.TempDir()
	lab := filepath.Join(dir, "lab")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report.json"), written.Bytes(), 0o644))
	require.NoError(t, os.WriteFile(lab, []byte("#!/bin/sh\ncat "+dir+"/report.json\n"), 0o755))
	got, err := options{guest: lab}.measureInGuest(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "report", want, got)
}

// TestFloods floods gateways for some seconds: over a link with a delay, with a CPU quota, and with two gateways. Their
// memory stays below the limit of their containers, and another flow continues. In so short a sample the memory would
// stay below it without limits of buffers too: TestBuffersAreLimited of netops/tunnel/wireguard covers these. With
// -short, as in a slow guest whose kernel has no quotas, there is one flood.
func TestFloods(t *testing.T) {
	strains := map[string]strain{"64 TCP streams": {}}
	if !testing.Short() {
		strains["64 TCP streams over 60 ms"] = strain{delay: 30 * time.Millisecond}
		strains["UDP, 1400 bytes"] = strain{gateways: 2}
		strains["UDP, 64 bytes"] = strain{quota: 0.2}
	}
	for name, s := range strains {
		t.Run(name, func(t *testing.T) { s.flood(t, name) })
	}
	expectNoChildren(t)
}

// flood measures the flood whose name is a prefix of name.
func (s strain) flood(t *testing.T, name string) {
	i := slices.IndexFunc(floods(), func(f flood) bool { return strings.HasPrefix(name, f.name) })
	s.kinds, s.sample, s.gateways = shortPlan().kinds, 3*time.Second, max(1, s.gateways)
	r, err := s.measure(t.Context(), floods()[i])
	require.NoError(t, err)
	require.NoError(t, r.write(t.Output(), name))
	if r.peak > clusters.MemoryLimit {
		t.Errorf("a gateway took %d MiB, want %d at most", r.peak>>20, clusters.MemoryLimit>>20)
	}
	if r.other == 0 {
		t.Error("nothing arrives of another flow")
	}
}

// TestScale replaces pods of a small cluster and checks that each gets its route.
func TestScale(t *testing.T) {
	var b bytes.Buffer
	c := crowd{kinds: shortPlan().kinds, nodes: 20, pods: 5, pause: 20 * time.Millisecond, sample: time.Second}
	require.NoError(t, c.measure(t.Context(), &b))
	t.Logf("\n%s", &b)
	if !strings.HasPrefix(b.String(), "| 20 | 100 | ") {
		t.Errorf("row %q", &b)
	}
	expectNoChildren(t)
}

// TestWeather measures a link without loss and, if the kernel has netem, as in a guest, a link that loses a tenth; with
// -short, this one alone.
func TestWeather(t *testing.T) {
	calm, bad := weather{Name: "calm", qdisc: "pfifo limit 1000"}, weather{Name: "10% loss", qdisc: "netem loss 10%"}
	p := weatherPlan{plan: shortPlan(), streams: 1, lines: []weather{calm}}
	switch hasNetem := p.kinds.WireGuard == records.Kernel; {
	case hasNetem && testing.Short():
		p.lines = []weather{bad}
	case hasNetem:
		p.lines = append(p.lines, bad)
	}
	p.only = []string{tunnelAlone, liqonetPath, webSocket}
	p.sample = time.Second
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
	for _, r := range all {
		for _, name := range p.only {
			// Each direction loses one in ten; without netem, only packets that the queues of a busy machine cannot
			// hold. WebSocket has what TCP gets of a line with losses, by its congestion control, and drops the rest.
			least, most := 0.5, 1.0
			switch {
			case r.Name == bad.Name && name == webSocket:
				least = 0
			case r.Name == bad.Name:
				most = 0.98
			}
			arrived := r.Metrics[metricUDP].Samples[name][0]
			if arrived <= least || arrived > most {
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
