package inventory

import (
	"context"
	"slices"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Installed are the objects in the namespace that are ours, and all that an installation may have outside it.
func Installed(ctx context.Context, c *cluster.Cluster) ([]cluster.Object, error) {
	objects, err := c.List(ctx, records.LabelComponent)
	if err != nil {
		return nil, err
	}
	wide, err := ClusterWide(c.Namespace)
	return append(objects, wide...), err
}

// ClusterWide are the objects that an installation may have outside its namespace.
func ClusterWide(namespace string) ([]cluster.Object, error) {
	// The image does not matter to what is looked for, and what the API server does not know is not there.
	base, err := templates.Base(templates.BaseValues{Namespace: namespace, Image: AnyImage, Policies: true})
	if err != nil {
		return nil, err
	}
	translation, err := templates.Translation(templates.TranslationValues{Namespace: namespace, Image: AnyImage})
	return slices.DeleteFunc(append(base, translation...), func(o cluster.Object) bool { return o.GetNamespace() != "" }), err
}

// AnyImage stands for the helpers' image in objects whose contents do not matter.
const AnyImage = "any"
