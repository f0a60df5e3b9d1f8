package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
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
