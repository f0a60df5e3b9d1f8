package translation

import (
	"errors"
	"fmt"
	"net/http"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/ipam/translate"
)

// Problem is the answer to what cannot be answered.
type Problem struct {
	// Text says what is wrong, for people.
	Text string `json:"error"`
	// Reason is one of a few words, for programs: see docs/openapi.json.
	Reason string `json:"reason"`
	// Hint is what helps; "" where there is no advice.
	Hint string `json:"hint,omitempty"`

	status int
}

func (p *Problem) Error() string { return p.Text }

// refusal is the problem as an error; nil for none.
func (p *Problem) refusal() error {
	if p == nil {
		return nil
	}
	return p
}

// refusef returns a problem with what a client asks.
func refusef(status int, reason, format string, args ...any) *Problem {
	return &Problem{Text: fmt.Sprintf(format, args...), Reason: reason, status: status}
}

// problemOf returns the problem that an error is.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	p := &Problem{Text: err.Error(), Reason: "unavailable", Hint: hint.Of(err), status: http.StatusServiceUnavailable}
	switch {
	case is[*translate.DamagedError](err):
		p.Reason = "damaged"
	case is[*translate.UntoldError](err):
		p.Reason, p.status = "untold", http.StatusConflict
	case is[*translate.UnknownPeerError](err):
		p.Reason, p.status = "unknown-peer", http.StatusNotFound
	case is[*translate.UnmappedError](err):
		p.Reason, p.status = "unmapped", http.StatusNotFound
	}
	return p
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
