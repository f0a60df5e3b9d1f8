package supervisor

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"

	"liqonet.io/liqonet/lab/control"
	nodes "liqonet.io/liqonet/lab/node"
)

// Names by which programs are run in the router and on the machine outside.
const (
	routerPlace  = "router"
	outsidePlace = "outside"
)

func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+control.EventsPath, s.serveEvents)
	mux.HandleFunc("GET "+control.StatusPath, s.whenUp(func(r *http.Request) (any, error) {
		return s.status(r.Context()), nil
	}))
	mux.HandleFunc("POST "+control.ImagesPath, s.whenUp(func(r *http.Request) (any, error) {
		return nil, s.load(r.Context(), r.Body)
	}))
	mux.HandleFunc("POST "+control.NodesPath, s.whenUp(func(r *http.Request) (any, error) {
		c, err := s.cluster(r.PathValue("cluster"))
		if err != nil {
			return nil, err
		}
		return s.addNode(r.Context(), c)
	}))
	mux.HandleFunc("POST "+control.PluginPath, s.whenUp(func(r *http.Request) (any, error) {
		c, err := s.cluster(r.PathValue("cluster"))
		if err != nil {
			return nil, err
		}
		return nil, s.upgradePlugin(r.Context(), c)
	}))
	mux.HandleFunc("POST "+control.KillPath, s.whenUp(func(r *http.Request) (any, error) {
		_, n, err := s.node(r.PathValue("node"))
		if err != nil {
			return nil, err
		}
		return nil, s.killNode(r.Context(), n)
	}))
	mux.HandleFunc("POST "+control.StartPath, s.whenUp(func(r *http.Request) (any, error) {
		c, n, err := s.node(r.PathValue("node"))
		if err != nil {
			return nil, err
		}
		return nil, s.reviveNode(r.Context(), c, n)
	}))
	return mux
}

// whenUp answers with what f returns, once the lab is up; changes are made one after the other.
func (s *Supervisor) whenUp(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.journal.up() {
			http.Error(w, errStarting.Error(), http.StatusConflict)
			return
		}
		if r.Method != http.MethodGet {
			s.change.Lock()
			defer s.change.Unlock()
		}
		answer, err := f(r)
		if err != nil {
			slog.Error("request", "path", r.URL.Path, "cause", err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		writeJSON(w, answer)
	}
}

func (s *Supervisor) serveEvents(w http.ResponseWriter, r *http.Request) {
	flush := http.NewResponseController(w)
	err := s.journal.follow(r.Context(), func(e control.Event) error {
		if err := json.NewEncoder(w).Encode(e); err != nil {
			return err
		}
		return flush.Flush()
	})
	if err != nil {
		slog.Info("events not delivered", "cause", err)
	}
}

func writeJSON(w http.ResponseWriter, answer any) {
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		slog.Info("answer not delivered", "cause", err)
	}
}

// status describes the lab as it is now. Nodes of a cluster whose API server does not answer are not ready.
func (s *Supervisor) status(ctx context.Context) control.Status {
	st := control.Status{
		Name: s.paths.Name, Tools: s.tools, Kubeconfig: s.paths.Kubeconfig(), Logs: s.paths.Data(),
		Places: map[string]nodes.Place{
			routerPlace:  {PID: os.Getpid(), Net: s.underlay.Router.Path()},
			outsidePlace: {PID: os.Getpid(), Net: s.underlay.Outside.Path()},
		},
	}
	for _, c := range s.clusters {
		st.Places[c.Name()+"-cp"] = nodes.Place{PID: os.Getpid(), Net: c.control.Namespace.Path()}
		ready, err := c.api.ReadyNodes(ctx)
		if err != nil {
			slog.Warn("nodes not known", "cluster", c.Name(), "cause", err)
		}
		described := control.Cluster{Name: c.Name(), Server: c.server()}
		for _, n := range c.list() {
			state := control.NotReady
			if pid, ok := n.running(); !ok {
				state = control.Stopped
			} else {
				st.Places[n.Name()] = nodes.Place{PID: pid}
				if _, ok := ready[n.Name()]; ok {
					state = control.Ready
				}
			}
			described.Nodes = append(described.Nodes, n.describe(state))
		}
		st.Clusters = append(st.Clusters, described)
	}
	return st
}
