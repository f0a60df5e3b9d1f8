package fakecluster

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// killers is the number of reactors that KillAt adds to a cluster.
const killers = 4

// KillAt cancels the context at the nth write of liqoctl to the clusters, as a kill does: that write and all later ones
// fail. It returns a function that counts the writes.
func KillAt(n int, cancel context.CancelFunc, clusters ...*Cluster) (count func() int) {
	var mu sync.Mutex
	writes := 0
	for _, c := range clusters {
		react := func(action clienttesting.Action) (bool, runtime.Object, error) {
			if patch, ok := action.(clienttesting.PatchActionImpl); ok && (patch.PatchType != "application/apply-patch+yaml" || len(patch.PatchOptions.DryRun) > 0) {
				return false, nil, nil
			}
			if action.GetResource().Resource == "selfsubjectaccessreviews" || action.GetSubresource() != "" {
				return false, nil, nil
			}
			if kind := action.GetResource().Resource; action.GetVerb() == "delete" && (kind == "pods" || kind == "leases") {
				return false, nil, nil // by a controller
			}
			mu.Lock()
			defer mu.Unlock()
			writes++
			if n > 0 && writes >= n {
				cancel()
				return true, nil, context.Canceled
			}
			return false, nil, nil
		}
		c.Fake.PrependReactor("patch", "*", react)
		c.Fake.PrependReactor("create", "configmaps", react)
		c.Fake.PrependReactor("create", "secrets", react)
		c.Fake.PrependReactor("delete", "*", react)
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return writes
	}
}

// NoKill removes the reactors of KillAt.
func NoKill(clusters ...*Cluster) {
	for _, c := range clusters {
		c.Set(func() { c.Fake.ReactionChain = c.Fake.ReactionChain[killers:] })
	}
}
