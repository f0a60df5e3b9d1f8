package ui

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressInPlainLines(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, false, false)
	p.Stage("reach")
	p.Stage("discover")
	p.Done("reach", "a v1.36.3, b v1.36.3", 300*time.Millisecond)
	p.Note("IPv6 ranges are left out")
	p.Warn("node n is not Ready", "kubectl describe node n")
	p.Fail(errors.New("discover: no pod CIDR"), "set it with --pod-cidr")
	want := `reach: a v1.36.3, b v1.36.3 (0.3s)
IPv6 ranges are left out
warning: node n is not Ready
hint: kubectl describe node n
error: discover: no pod CIDR
hint: set it with --pod-cidr
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

// TestLatencies: the latencies of requests follow the stage in which they were made, the last ones the end.
func TestLatencies(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, false, false)
	p.Stage("reach")
	for _, took := range []time.Duration{90, 5, 4} {
		p.Request("us", took*time.Millisecond)
	}
	p.Request("eu", 1500*time.Microsecond)
	p.Done("reach", "", time.Second)
	p.Done("compare", "", time.Second)
	p.Request("eu", time.Millisecond)
	p.Fail(errors.New("x"), "")
	p.Request("us", time.Millisecond)
	p.Stop()
	want := `reach (1.0s)
  API server of eu: median 1.5ms, requests: 1
  API server of us: median 5.0ms, requests: 3
compare (1.0s)
  API server of eu: median 1.0ms, requests: 1
error: x
  API server of us: median 1.0ms, requests: 1
`
	if got := out.String(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func TestSlowStageInPlainLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := NewProgress(&out, false, false)
		p.Stage("reach")
		p.Done("reach", "", time.Second)
		p.Stage("nodes")
		<-time.After(slowStage + 1)
		synctest.Wait()
		p.Done("nodes", "", slowStage)
		if got, want := out.String(), "reach (1.0s)\nnodes ...\nnodes (3.0s)\n"; got != want {
			t.Errorf("got:\n%swant:\n%s", got, want)
		}
	})
}

func TestProgressOnATerminal(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, true, true)
	p.Stage("reach")
	p.Done("reach", "both", time.Second)
	p.Stage("discover")
	if p.spinner == nil || p.spinner.Text != "discover" {
		t.Errorf("the running stage is not shown: %+v", p.spinner)
	}
	p.Stop()
	if p.spinner != nil {
		t.Error("the spinner still turns")
	}
	if got := out.String(); strings.Contains(got, "reach: both") {
		t.Errorf("a stage that is done leaves a line: %q", got)
	}
}

func TestProgressWithoutColour(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, true, false)
	p.Stage("reach")
	p.Done("reach", "", time.Second)
	p.Fail(errors.New("x"), "y")
	if got := out.String(); strings.Contains(got, "\x1b[3") || !strings.Contains(got, "error: x\nhint: y\n") {
		t.Errorf("got %q", got)
	}
}
