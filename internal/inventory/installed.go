package inventory

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// Installed returns liqonet's objects in the namespace, and all objects that an installation may have outside it.
func Installed(ctx context.Context, c *kube.Cluster) ([]kube.Object, error) {
	objects, err := c.List(ctx, records.LabelComponent)
	if err != nil {
		return nil, err
	}
	wide, err := ClusterWide(c.Namespace)
	return append(objects, wide...), err
}

// ClusterWide returns the objects that an installation may have outside its namespace.
func ClusterWide(namespace string) ([]kube.Object, error) {
	// Only names and kinds are used, so the image is arbitrary. Kinds that the API server does not have are not found.
	base, err := templates.Base(templates.BaseValues{Namespace: namespace, Image: AnyImage, Policies: true})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(base, func(o kube.Object) bool { return o.GetNamespace() != "" }), nil
}

// AnyImage is the helpers' image in objects whose contents are not used.
const AnyImage = "any"

// PodSettings returns the pod settings of an installation, read from its DaemonSet.
func PodSettings(ctx context.Context, c *kube.Cluster) (templates.Pods, error) {
	set, err := kube.Find[*appsv1.DaemonSet](ctx, c, records.NodeName)
	if set == nil || err != nil {
		return templates.Pods{}, err
	}
	pods, err := templates.ReadPods(set)
	if err != nil {
		return pods, hint.With(fmt.Errorf("DaemonSet %s/%s of cluster %q: %w", c.Namespace, records.NodeName, c.Context, err),
			"remove the annotation, then run liqoctl network init --update with the settings for pods")
	}
	return pods, nil
}

// InstalledImage returns the image of an installation's helpers; "": liqonet is not installed.
func InstalledImage(ctx context.Context, c *kube.Cluster) (string, error) {
	set, err := kube.Find[*appsv1.DaemonSet](ctx, c, records.NodeName)
	if err != nil || set == nil || len(set.Spec.Template.Spec.Containers) == 0 {
		return "", err
	}
	return set.Spec.Template.Spec.Containers[0].Image, nil
}
