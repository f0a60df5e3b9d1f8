package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Ready reports whether a node has the condition Ready.
func Ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
