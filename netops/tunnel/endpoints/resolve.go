// Package endpoints resolves and chooses the addresses at which a tunnel reaches its remote end.
package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// resolveTimeout limits the resolution of the names of all endpoints.
const resolveTimeout = 3 * time.Second

// Lookup resolves a name, as net.Resolver.LookupNetIP does.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// Resolve returns the addresses of the endpoints, in order and without duplicates. Endpoints that cannot be resolved
// are left out and reported in the error; both addresses and an error may be returned.
func Resolve(ctx context.Context, find Lookup, endpoints []string) ([]netip.AddrPort, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	var (
		found []netip.AddrPort
		errs  []error
	)
	for _, endpoint := range endpoints {
		addrs, err := resolveOne(ctx, find, endpoint)
		if err != nil {
			errs = append(errs, fmt.Errorf("resolve endpoint %q: %w", endpoint, err))
		}
		for _, a := range addrs {
			if !slices.Contains(found, a) {
				found = append(found, a)
			}
		}
	}
	return found, errors.Join(errs...)
}

func resolveOne(ctx context.Context, find Lookup, endpoint string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("port %q: want 1 to 65535", service)
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(addr.Unmap(), uint16(port))}, nil
	}
	addrs, err := find(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(addrs, netip.Addr.Compare) // servers rotate their answers; "next" requires an order
	out := make([]netip.AddrPort, 0, len(addrs))
	for _, addr := range addrs {
		out = append(out, netip.AddrPortFrom(addr.Unmap(), uint16(port)))
	}
	return out, nil
}

// after returns the candidate after current, the first one if current is not a candidate, and the zero value without
// candidates.
func after(current netip.AddrPort, candidates []netip.AddrPort) netip.AddrPort {
	if len(candidates) == 0 {
		return netip.AddrPort{}
	}
	return candidates[(slices.Index(candidates, current)+1)%len(candidates)]
}

// freeFirst sorts the candidates: those at taken addresses come last. None is left out, because a server may be
// reachable at a single address.
func freeFirst(candidates []netip.AddrPort, taken []netip.Addr) []netip.AddrPort {
	free, others := candidates[:0:0], candidates[:0:0]
	for _, c := range candidates {
		if slices.Contains(taken, c.Addr()) {
			others = append(others, c)
		} else {
			free = append(free, c)
		}
	}
	return append(free, others...)
}

// alternate returns the candidates alternating with other addresses at the port of the first candidate, so that wrong
// addresses in either list delay valid ones of the other only briefly.
func alternate(candidates []netip.AddrPort, others []netip.Addr) (all []netip.AddrPort) {
	if len(candidates) == 0 {
		return nil
	}
	var more []netip.AddrPort
	for _, a := range others {
		if e := netip.AddrPortFrom(a, candidates[0].Port()); !slices.Contains(candidates, e) {
			more = append(more, e)
		}
	}
	for i := range max(len(candidates), len(more)) {
		all = append(all, candidates[min(i, len(candidates)):min(i+1, len(candidates))]...)
		all = append(all, more[min(i, len(more)):min(i+1, len(more))]...)
	}
	return all
}
