package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/templates"
)

// installation is a node helper that runs in some namespace of a cluster. A cluster can have only one: two would
// compete for the same port, links and routes on each node.
type installation struct {
	namespace string
	since     time.Time
}

// ElsewhereError reports that the command's namespace is not the one in which liqonet is installed.
type ElsewhereError struct{ Context, Namespace, Installed string }

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("liqonet is installed in namespace %s of cluster %q, not in %s", e.Installed, e.Context, e.Namespace)
}

// Hint suggests how to use the existing installation.
func (e *ElsewhereError) Hint() string {
	return fmt.Sprintf("use it with --namespace %s, or --remote-namespace for the remote cluster; to install it elsewhere, remove it first: "+
		"liqoctl network reset -n %s --context %s", e.Installed, e.Installed, kube.ShellWord(e.Context))
}

// CheckElsewhere returns an error if the cluster's first installation is in another namespace than the client's.
// younger has the namespaces of installations that were created after the one in the client's namespace; these cannot
// work.
func CheckElsewhere(ctx context.Context, c *kube.Cluster) (younger []string, err error) {
	all, err := installations(ctx, c)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	if first := all[0].namespace; first != c.Namespace {
		return nil, &ElsewhereError{Context: c.Context, Namespace: c.Namespace, Installed: first}
	}
	for _, i := range all[1:] {
		younger = append(younger, i.namespace)
	}
	return younger, nil
}

// CheckInstalled returns an error for a namespace without liqonet. A fabric or, in an incomplete installation,
// reservations are sufficient.
func CheckInstalled(ctx context.Context, c *kube.Cluster) error {
	fabric, err := kube.Find[*corev1.ConfigMap](ctx, c, records.FabricName)
	if fabric != nil || err != nil {
		return err
	}
	reservations, err := kube.Find[*corev1.ConfigMap](ctx, c, records.IPAMName)
	if err != nil {
		return err
	}
	if reservations == nil {
		return NotInstalled(ctx, c)
	}
	_, err = CheckElsewhere(ctx, c)
	return err
}

// NotInstalled returns the error for a namespace without liqonet. It contains the namespace in which liqonet is
// installed, if any.
func NotInstalled(ctx context.Context, c *kube.Cluster) error {
	if _, err := CheckElsewhere(ctx, c); err != nil {
		return err
	}
	return NotInstalledError(c.Context, c.Namespace)
}

// NotInstalledError returns the error for a cluster in which liqonet is not installed.
func NotInstalledError(kubeContext, namespace string) error {
	return hint.With(fmt.Errorf("liqonet is not installed in namespace %s of cluster %q", namespace, kubeContext),
		"install it with liqoctl network init, or by connecting the cluster: liqoctl network connect")
}

// installations returns those of a cluster, in all namespaces, the oldest first. For a user who may list neither
// DaemonSets nor Pods of the cluster the result is empty.
func installations(ctx context.Context, c *kube.Cluster) ([]installation, error) {
	all, err := helpers(ctx, c, func(set *appsv1.DaemonSet) bool {
		return set.Name == records.NodeName && set.Spec.Template.Spec.HostNetwork
	})
	if apierrors.IsForbidden(err) {
		all, err = helpers(ctx, c, func(pod *corev1.Pod) bool { return pod.Spec.HostNetwork })
	}
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for installations: %w", err)
	}
	// Of each namespace, keep the oldest.
	slices.SortStableFunc(all, func(a, b installation) int {
		return cmp.Or(strings.Compare(a.namespace, b.namespace), a.since.Compare(b.since))
	})
	all = slices.CompactFunc(all, func(a, b installation) bool { return a.namespace == b.namespace })
	slices.SortStableFunc(all, func(a, b installation) int { return a.since.Compare(b.since) })
	var found []installation
	for _, i := range all {
		if i.namespace == c.Namespace {
			found = append(found, i)
			continue
		}
		// Every user who may create pods can label them, whereas a ClusterRole is created by an administrator. If the
		// user may not read it, the label is trusted.
		role, err := kube.Find[*rbacv1.ClusterRole](ctx, c, templates.NodeClusterRole(i.namespace))
		switch {
		case role != nil, apierrors.IsForbidden(err):
			found = append(found, i)
		case err != nil:
			return nil, fmt.Errorf("look for installations: %w", err)
		}
	}
	return found, nil
}

// helpers returns the objects of a type, in all namespaces, that belong to node helpers.
func helpers[T kube.Object](ctx context.Context, c *kube.Cluster, isHelper func(T) bool) (found []installation, err error) {
	everywhere := *c
	everywhere.Namespace = metav1.NamespaceAll
	all, err := kube.All[T](ctx, &everywhere, Selector(records.ComponentFabric))
	for _, o := range all {
		if isHelper(o) {
			found = append(found, installation{o.GetNamespace(), o.GetCreationTimestamp().Time})
		}
	}
	return found, err
}
