package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What carries the packets of a tunnel, in the answer of status.
const (
	UDP       = ""
	WebSocket = "websocket"
)

// AwaitTransport waits until all tunnels of the client's gateways are carried by a transport.
func (b *Bed) AwaitTransport(ctx context.Context, want string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		have, err := b.transports(ctx)
		if err != nil {
			return err
		}
		if len(have) > 0 && !slices.ContainsFunc(have, func(transport string) bool { return transport != want }) {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return fmt.Errorf("wait until transport %q carries all tunnels, of which these do: %q: %w", want, have, err)
		}
	}
}

// transports are those of the client's tunnels.
func (b *Bed) transports(ctx context.Context) ([]string, error) {
	cmd := b.command(ctx, "network", "status", "--context", client, "-o", "json")
	out, exit := cmd.Output() // its exit code is that of a peering that is not healthy
	var answer struct {
		Peerings []struct {
			Gateways []struct {
				Tunnels []struct{ Transport string }
			}
		}
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("%v: %w in %s", cmd.Args, errors.Join(exit, err), out)
	}
	var all []string
	for _, p := range answer.Peerings {
		for _, g := range p.Gateways {
			for _, t := range g.Tunnels {
				all = append(all, t.Transport)
			}
		}
	}
	return all, nil
}
