package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const testNamespace = "liqonet"

// recorded are the events that a test's API server received.
type recorded struct {
	*Events
	created []*corev1.Event
	tries   int
	answer  error // to each event; nil: accepted
	after   func(time.Duration)
}

// testEvents runs a test with a writer of events, in virtual time.
func testEvents(t *testing.T, do func(r *recorded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "status-b", Namespace: testNamespace, UID: "status"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "status-c", Namespace: testNamespace, UID: "another"}},
			&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "node-7", Namespace: testNamespace, UID: "lease"}},
		)
		r := &recorded{Events: NewEvents(Source{client, testNamespace, "liqonet-test", "n1", "n1", slog.New(slog.DiscardHandler)}, 3, time.Minute)}
		ctx, cancel := context.WithCancel(t.Context())
		client.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
			r.tries++
			e := a.(clienttesting.CreateAction).GetObject().(*corev1.Event)
			if r.answer == nil {
				r.created = append(r.created, e)
			}
			return true, e, r.answer
		})
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx) }()
		r.after = func(d time.Duration) {
			r.mu.Lock()   // synchronises the test's accesses with the writer
			r.mu.Unlock() //nolint:staticcheck // empty on purpose
			time.Sleep(d) //nolint:forbidigo // synctest's clock
			synctest.Wait()
		}
		do(r)
		cancel()
		<-done
	})
}

// TestEventsAreOfTheirObjects checks the UID of the objects, by which kubectl describe selects events.
func TestEventsAreOfTheirObjects(t *testing.T) {
	t.Parallel()
	testEvents(t, func(r *recorded) {
		r.Add("ConfigMap", "status-b", true, StateChanged, "healthy, was down")
		r.Add("Lease", "node-7", false, DriftRestored, "x\x1b[31m\ny"+strings.Repeat("ü", maxMessage))
		r.Add("ConfigMap", "gone", false, StateChanged, "not visible")
		r.after(0)
		if len(r.created) != 2 {
			t.Fatalf("%d events: %v", len(r.created), r.created)
		}
		state, drift := r.created[0], r.created[1]
		if state.InvolvedObject.UID != "status" || state.Type != corev1.EventTypeNormal || state.Reason != StateChanged || state.Namespace != testNamespace {
			t.Errorf("state: %+v", state)
		}
		if drift.InvolvedObject.UID != "lease" || drift.Type != corev1.EventTypeWarning || drift.Source.Host != "n1" {
			t.Errorf("drift: %+v", drift)
		}
		if len(drift.Message) > 1024 || strings.ContainsAny(drift.Message, "\x1b\n") || !utf8.ValidString(drift.Message) {
			t.Errorf("message %q", drift.Message)
		}
	})
}

// TestEventsHaveFewNames checks that a helper uses a hundred names, as a policy permits, which bounds its events. Names
// in use are skipped.
func TestEventsHaveFewNames(t *testing.T) {
	t.Parallel()
	testEvents(t, func(r *recorded) {
		r.next = 99
		for range 2 {
			r.Add("ConfigMap", "status-b", true, StateChanged, "m")
			r.after(0)
		}
		if len(r.created) != 2 || r.created[0].Name != "n1.99" || r.created[1].Name != "n1.0" || r.created[0].GenerateName != "" {
			t.Errorf("events %v", r.created)
		}
		r.answer, r.tries = apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "n1"), 0
		r.Add("ConfigMap", "status-b", true, StateChanged, "m")
		r.after(time.Hour)
		if r.tries != eventTries || r.some() {
			t.Errorf("%d tries where all names are in use", r.tries)
		}
	})
}

// TestEventsAreFew checks that the API server gets few events, with the count and the last message.
func TestEventsAreFew(t *testing.T) {
	t.Parallel()
	testEvents(t, func(r *recorded) {
		for i := range 36_000 { // an hour
			r.Add("ConfigMap", "status-b", i%2 == 0, StateChanged, fmt.Sprint("state ", i))
			r.Add("ConfigMap", fmt.Sprint("status-", i), false, RecordRefused, "of many")
			r.after(100 * time.Millisecond)
		}
		if len(r.waiting) > eventsWaiting {
			t.Errorf("%d events wait", len(r.waiting))
		}
		r.after(time.Hour)
		if len(r.created) > 3+120 || len(r.waiting) > 0 {
			t.Fatalf("%d events, %d wait", len(r.created), len(r.waiting))
		}
		count, last := 0, ""
		for _, e := range r.created {
			count, last = count+int(e.Count), e.Message
		}
		if count != 36_000 || last != "state 35999" {
			t.Errorf("events count %d, the last is %q", count, last)
		}
	})
}

// TestEventsWaitForTheServer checks that no event is lost while the API server is away, and that nothing waits for it.
func TestEventsWaitForTheServer(t *testing.T) {
	t.Parallel()
	testEvents(t, func(r *recorded) {
		r.answer = errors.New("connection refused")
		begin := time.Now()
		r.Add("ConfigMap", "status-b", false, StateChanged, "down, was healthy")
		if time.Since(begin) > 0 {
			t.Error("the loop has waited")
		}
		r.after(20 * time.Minute)
		if r.tries > 3+20 {
			t.Errorf("%d tries", r.tries)
		}
		r.Add("ConfigMap", "status-b", true, StateChanged, "healthy, was down")
		r.answer = nil
		r.after(2 * time.Minute)
		if len(r.created) != 1 || r.created[0].Count != 2 || r.created[0].Message != "healthy, was down" {
			t.Errorf("written: %v", r.created)
		}
	})
}

// TestEventsWithoutTheRight checks that helpers continue if an installation of an earlier release permits no events.
func TestEventsWithoutTheRight(t *testing.T) {
	t.Parallel()
	testEvents(t, func(r *recorded) {
		var log strings.Builder
		r.Log = slog.New(slog.NewTextHandler(io.Writer(&log), nil))
		r.answer = apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no"))
		for range 5 {
			r.Add("ConfigMap", "status-b", false, StateChanged, "down")
			r.after(2 * time.Minute)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || len(r.waiting) != 0 {
			t.Errorf("%d lines, %d wait:\n%s", lines, len(r.waiting), &log)
		}
		r.answer = nil
		r.Add("ConfigMap", "status-b", true, StateChanged, "healthy")
		r.after(2 * time.Minute)
		if len(r.created) != 1 {
			t.Error("none written after the right was given")
		}
	})
}
