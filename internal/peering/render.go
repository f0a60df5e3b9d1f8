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

// Manifests are the objects of one side of a peering, as a client applies them.
type Manifests struct {
	Cluster string // its name
	Objects []map[string]any
}

// RenderOptions are the options of Render.
type RenderOptions struct {
	ConnectOptions
	// WithSecrets has the keys among the objects, and makes those that are missing.
	WithSecrets bool
}

// Render returns the objects that Connect would leave in both clusters, and changes nothing. It needs what Connect
// would learn on its way, and says what is missing.
func Render(ctx context.Context, o RenderOptions, r progress.Reporter) (local, remote Manifests, err error) {
	bounded, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	c := newConnector(o.ConnectOptions, progress.Planning(r))
	for _, step := range []func(context.Context) (string, error){c.reach, c.discover} {
		if _, err := step(bounded); err != nil {
			return local, remote, err
		}
	}
	for _, e := range c.ends() {
		e.notePublic()
	}
	d := c.dry((*kube.Cluster).Rendering)
	d.rendering = true
	for _, e := range d.ends() {
		if slices.Contains(e.keys, nil) && !o.WithSecrets {
			return local, remote, hint.With(fmt.Errorf("cluster %q has no keys for peering %q", e.cluster.Context, e.peering), "make them with --with-secrets")
		}
		e.assumedMTU = e.settings.MTU
	}
	if err := d.rehearse(bounded); err != nil {
		return local, remote, err
	}
	if local, err = d.local.manifests(o.WithSecrets); err != nil {
		return local, remote, err
	}
	remote, err = d.remote.manifests(o.WithSecrets)
	return local, remote, err
}

// manifests are the objects of one end.
func (e *end) manifests(secrets bool) (Manifests, error) {
	var missing []error
	if e.fabric.Overlay.Kind == "" {
		missing = append(missing, errors.New("the overlay's kind (--overlay)"))
	}
	if e.written.MTU == 0 || e.fabric.MTU == 0 {
		missing = append(missing, errors.New("the MTU (--mtu)"))
	}
	if e.role == records.Client && len(e.written.Endpoints()) == 0 {
		missing = append(missing, errors.New("the server's endpoint (--gw-client-address and --gw-client-port, or --gw-server-service-nodeport)"))
	}
	m := Manifests{Cluster: e.name}
	if len(missing) > 0 {
		return m, &progress.InputError{
			Err:    fmt.Errorf("render cluster %q: not known before the clusters are connected: %w", e.cluster.Context, errors.Join(missing...)),
			Advice: "give the missing values with the flags",
		}
	}
	m.Objects = slices.DeleteFunc(e.cluster.Rendered(), func(o map[string]any) bool { return o["kind"] == "Secret" && !secrets })
	return m, nil
}
