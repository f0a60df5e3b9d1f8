package peering

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
)

// errKeysTaken says that a cluster has keys by now, which somebody else made.
var errKeysTaken = errors.New("keys were made meanwhile")

// agreeOnKeys brings keys to both ends that fit each other, those that they hold and new ones for what is missing.
// Another connect of the same two may do so at this moment: a private key is only ever created, never written over,
// and of two preshared keys the server's counts, so that both arrive at the same.
func (c *connector) agreeOnKeys(ctx context.Context) error {
	found := map[*end]*keys{c.server: c.server.keys, c.client: c.client.keys}
	for {
		s, k, err := completeKeys(c.server.keys, c.client.keys)
		if err != nil {
			return err
		}
		wanted := map[*end]keys{c.server: s, c.client: k}
		err = c.both(ctx, func(ctx context.Context, e *end) error { return e.putKeys(ctx, wanted[e]) })
		if err == nil {
			for e, k := range wanted {
				e.keys = &k
				e.rekeyed = e.have != nil && !found[e].equal(&k)
			}
			return nil
		}
		if !errors.Is(err, errKeysTaken) {
			return err
		}
		err = c.both(ctx, func(ctx context.Context, e *end) (err error) {
			e.keys, err = readKeys(ctx, e.Cluster, e.peering)
			return err
		})
		if err != nil {
			return err
		}
	}
}

// putKeys stores the keys of this end.
func (e *end) putKeys(ctx context.Context, k keys) error {
	e.joining = e.have == nil
	object := keysObject(e.Cluster.Namespace, e.peering, k)
	if e.keys != nil {
		return e.apply(ctx, object)
	}
	_, err := e.Cluster.Kube.CoreV1().Secrets(e.Cluster.Namespace).Create(ctx, object, metav1.CreateOptions{FieldManager: cluster.FieldManager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return errKeysTaken
	case err != nil:
		return fmt.Errorf("create Secret %s/%s in cluster %q: %w", object.Namespace, object.Name, e.Cluster.Context, err)
	}
	e.changes = append(e.changes, cluster.Change{Kind: "Secret", Namespace: object.Namespace, Name: object.Name, Action: cluster.Created})
	return nil
}
