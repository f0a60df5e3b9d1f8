package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"strconv"
	"sync"
	"time"

	"liqonet.io/liqonet/lab/faults/flows"
)

// probe serves measurements of the paths to other pods: GET /begin?to=HOST...&streams=N begins one, GET /lap answers
// with a flows.Result for each host since the last lap, GET /end ends it and answers with the last. It works while no
// API server does.
func probe(ctx context.Context, args []string) error {
	options := flag.NewFlagSet("probe", flag.ContinueOnError)
	at := options.String("at", ":8090", "`ADDRESS:PORT` to answer at")
	if err := options.Parse(args); err != nil {
		return err
	}
	p := &prober{ctx: ctx}
	mux := http.NewServeMux()
	mux.HandleFunc("/begin", p.begin)
	mux.HandleFunc("/lap", p.lap)
	mux.HandleFunc("/end", p.end)
	server := &http.Server{Addr: *at, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// prober has one measurement at most.
type prober struct {
	ctx context.Context //nolint:containedctx // of the process: measurements outlive the request that begins them
	mu  sync.Mutex
	now *flows.Measurement // nil: none
}

func (p *prober) begin(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		http.Error(w, "a measurement runs already", http.StatusConflict)
		return
	}
	streams, _ := strconv.Atoi(r.URL.Query().Get("streams")) // 0: the default
	m, err := flows.Begin(p.ctx, r.URL.Query()["to"], streams)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	p.now = m
}

func (p *prober) lap(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		http.Error(w, "no measurement runs", http.StatusConflict)
		return
	}
	_ = json.NewEncoder(w).Encode(p.now.Lap()) // the client notices a short answer
}

func (p *prober) end(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil {
		http.Error(w, "no measurement runs", http.StatusConflict)
		return
	}
	results := p.now.End()
	p.now = nil
	_ = json.NewEncoder(w).Encode(results) // the client notices a short answer
}
