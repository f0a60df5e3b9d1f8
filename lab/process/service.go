package process

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"liqonet.io/liqonet/lab/netns"
)

// restartDelay is between the end of a service and its next start.
const restartDelay = time.Second

// waitInterval is between two looks whether a path exists.
const waitInterval = 20 * time.Millisecond

// fewCollections has Go programs collect garbage less often. A tenth and more of the processor time of a control plane
// that starts is garbage collection, and memory is what a machine with labs has.
const fewCollections = "GOGC=400"

// Service is a program that is started again when it ends.
type Service struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // the first is the program's path
	Env  []string `json:"env"`  // all of its environment: Go programs take the first of duplicates
	Log  string   `json:"log"`  // file that its output is appended to
	// After are paths that must exist before it starts.
	After []string `json:"after,omitempty"`
	// Once is set for a program that is started again only until it has ended well.
	Once bool `json:"once,omitempty"`
}

// Keep runs the service inside a network namespace, nil for the program's own, until ctx is done or, of a Once
// service, until it has ended well. It returns ctx's error in the first case, nil in the second.
func (s *Spawner) Keep(ctx context.Context, v Service, in *netns.Namespace) error {
	for ctx.Err() == nil {
		err := s.runOnce(ctx, v, in)
		if v.Once && err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		slog.Warn("service ended", "service", v.Name, "cause", err)
		select {
		case <-ctx.Done():
		case <-time.After(restartDelay):
		}
	}
	return ctx.Err()
}

func (s *Spawner) runOnce(ctx context.Context, v Service, in *netns.Namespace) error {
	for _, path := range v.After {
		if err := waitForPath(ctx, path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(v.Log), 0o755); err != nil {
		return err
	}
	log, err := os.OpenFile(v.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, v.Args[0], v.Args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(slices.Clip(v.Env), fewCollections), log, log
	if err := s.Start(cmd, in); err != nil {
		return fmt.Errorf("start %s: %w", v.Name, err)
	}
	return cmd.Wait()
}

// waitForPath returns when the path exists.
func waitForPath(ctx context.Context, path string) error {
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
