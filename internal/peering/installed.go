package peering

import (
	"context"
	"slices"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// installed are the objects in the namespace that are ours, and all that an installation may have outside it.
func installed(ctx context.Context, c *cluster.Cluster) ([]cluster.Object, error) {
	objects, err := c.List(ctx, records.LabelComponent)
	if err != nil {
		return nil, err
	}
	wide, err := clusterWide(c.Namespace)
	return append(objects, wide...), err
}

// clusterWide are the objects that an installation may have outside its namespace.
func clusterWide(namespace string) ([]cluster.Object, error) {
	// The image does not matter to what is looked for, and what the API server does not know is not there.
	base, err := templates.Base(templates.BaseValues{Namespace: namespace, Image: anyImage, Policies: true})
	if err != nil {
		return nil, err
	}
	translation, err := templates.Translation(templates.TranslationValues{Namespace: namespace, Image: anyImage})
	return slices.DeleteFunc(append(base, translation...), func(o cluster.Object) bool { return o.GetNamespace() != "" }), err
}

// anyImage stands for the helpers' image in objects whose contents do not matter.
const anyImage = "any"
