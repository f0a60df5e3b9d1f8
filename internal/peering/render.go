package peering

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
)

// Manifests are the objects of one cluster of a peering, as a client applies them.
type Manifests struct {
	Cluster string // its name
	Objects []map[string]any
}

// RenderOptions are the options of Render.
type RenderOptions struct {
	ConnectOptions
	// WithSecrets includes the keys in the objects, and generates missing ones.
	WithSecrets bool
}

// Render returns the objects that Connect would create in both clusters. It changes nothing. Values that Connect
// determines while it runs must be given; the error lists missing ones.
func Render(ctx context.Context, o RenderOptions, r progress.Reporter) (local, remote Manifests, err error) {
	bounded, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	c := newConnector(o.ConnectOptions, progress.Planning(r))
	if err := inOrder(bounded, c.reach, c.discover); err != nil {
		return local, remote, err
	}
	for _, m := range c.members() {
		m.reportPublicCIDRs()
	}
	d := c.dry((*kube.Cluster).Rendering)
	d.rendering = true
	for _, m := range d.members() {
		if slices.Contains(m.keys, nil) && !o.WithSecrets {
			return local, remote, hint.With(fmt.Errorf("cluster %q has no keys for peering %q", m.cluster.Context, m.peering), "make them with --with-secrets")
		}
		m.assumedMTU = *m.settings.Complete().MTU
	}
	if err := d.applyAll(bounded); err != nil {
		return local, remote, err
	}
	if local, err = d.local.manifests(o.WithSecrets); err != nil {
		return local, remote, err
	}
	remote, err = d.remote.manifests(o.WithSecrets)
	return local, remote, err
}

// manifests returns the objects of one member.
func (m *member) manifests(secrets bool) (Manifests, error) {
	var missing []error
	if m.fabric.Overlay.Kind == "" {
		missing = append(missing, errors.New("the overlay's kind (--overlay)"))
	}
	if m.written.MTU == 0 || m.fabric.MTU == 0 {
		missing = append(missing, errors.New("the MTU (--mtu)"))
	}
	if m.role == records.Client && m.settings.CarriesWebSocket() && len(m.written.WebSockets()) == 0 {
		missing = append(missing, errors.New("the server's address for WebSocket (--gw-client-address, or --gw-server-ingress)"))
	}
	if m.role == records.Client && m.settings.UsesUDP() && len(m.written.Endpoints()) == 0 {
		missing = append(missing, errors.New("the server's endpoint (--gw-client-address and --gw-client-port, or --gw-server-service-nodeport)"))
	}
	manifests := Manifests{Cluster: m.name}
	if len(missing) > 0 {
		return manifests, &progress.InputError{
			Err:    fmt.Errorf("render cluster %q: not known before the clusters are connected: %w", m.cluster.Context, errors.Join(missing...)),
			Advice: "give the missing values with the flags",
		}
	}
	manifests.Objects = slices.DeleteFunc(m.cluster.Rendered(), func(o map[string]any) bool { return o["kind"] == "Secret" && !secrets })
	return manifests, nil
}
