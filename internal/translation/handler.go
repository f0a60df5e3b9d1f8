package translation

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"liqonet.io/liqonet/docs"
)

// contentType of every answer, and of every body.
const contentType = "application/json"

// errUnread says that the service has only begun.
var errUnread = errors.New("the records have not all been read yet")

// handler answers requests.
type handler struct {
	mux     *http.ServeMux
	current func() *view // nil: not known yet
	gate    *gate
	log     *slog.Logger
}

func newHandler(current func() *view, g *gate, log *slog.Logger) *handler {
	h := &handler{mux: http.NewServeMux(), current: current, gate: g, log: log}
	for _, question := range routes() {
		h.mux.Handle(question.path, h.guarded(question))
	}
	h.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, docs.OpenAPI) })
	h.mux.HandleFunc("GET /readyz", h.ready)
	h.mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, []byte("{}\n")) })
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.refuse(w, r, refusef(http.StatusNotFound, "no-such-path", "there is no %s %s: see /openapi.json", r.Method, r.URL.Path))
	})
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.mux.ServeHTTP(w, r)
}

// guarded answers one question to those who may ask it. Who may not is not told whether there is an answer, and of
// his body nothing is read.
func (h *handler) guarded(question route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != question.method {
			w.Header().Set("Allow", question.method)
			h.refuse(w, r, refusef(http.StatusMethodNotAllowed, "bad-request", "%s %s: want %s", r.Method, r.URL.Path, question.method))
			return
		}
		if err := h.gate.admit(r, r.PathValue("peer")); err != nil {
			h.refuse(w, r, err)
			return
		}
		v, err := h.view()
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		answer, err := question.answer(v, r)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		h.write(w, http.StatusOK, answer)
	})
}

// view returns what the records say, or why that is not known.
func (h *handler) view() (*view, error) {
	v := h.current()
	if v == nil {
		return nil, errUnread
	}
	return v, v.err
}

// ready tells the kubelet whether there are answers.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	if _, err := h.view(); err != nil {
		h.refuse(w, r, err)
		return
	}
	write(w, http.StatusOK, []byte("{}\n"))
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	h.log.Debug("refused", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "status", p.status, "error", p.Text)
	h.write(w, p.status, p)
}

func (h *handler) write(w http.ResponseWriter, status int, answer any) {
	text, err := json.Marshal(answer)
	if err != nil {
		h.log.Error("an answer cannot be encoded", "error", err)
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be encoded","reason":"unavailable"}`)
	}
	write(w, status, append(text, '\n'))
}

func write(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client sees what is missing
}
