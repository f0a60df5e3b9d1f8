package supervisor

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqonet.io/liqonet/lab/control"
)

func TestJournalIsFollowedFromTheStart(t *testing.T) {
	j := newJournal(time.Now())
	j.add("networks up")
	heard := make(chan []string)
	follow := func() {
		var texts []string
		err := j.follow(t.Context(), func(e control.Event) error {
			texts = append(texts, e.Text)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		heard <- texts
	}
	go follow()
	j.add("cluster %s up", "a")
	if j.up() {
		t.Error("up before the last event")
	}
	j.end(nil)
	go follow()
	want := []string{"networks up", "cluster a up", "lab is up"}
	for range 2 {
		if d := cmp.Diff(want, <-heard); d != "" {
			t.Error(d)
		}
	}
	if !j.up() {
		t.Error("not up after a good last event")
	}
}

func TestRequestsBeforeTheLabIsUp(t *testing.T) {
	s := &Supervisor{journal: newJournal(time.Now())}
	s.journal.end(errors.New("no room"))
	for _, r := range [][2]string{{"GET", control.StatusPath}, {"POST", control.ImagesPath}, {"POST", "/nodes/a-1/kill"}} {
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, httptest.NewRequest(r[0], r[1], nil))
		if w.Code != 409 {
			t.Errorf("%s %s: status %d, want 409", r[0], r[1], w.Code)
		}
	}
}
