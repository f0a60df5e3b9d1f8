package fakecluster

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// Client returns another client of the cluster, with reactors of its own. Its requests go to the cluster's fake client.
func (c *Cluster) Client() *fake.Clientset {
	client := fake.NewSimpleClientset()
	client.Resources = c.Fake.Resources
	client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, err := c.Fake.Invokes(action, nil)
		return true, object, err
	})
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		events, err := c.Fake.InvokesWatch(action)
		return true, events, err
	})
	return client
}

// Unlocked returns the cluster for a run that has lost its lock while a write was on its way, or that takes none: it
// does not wait for other runs, and they do not wait for it.
func (c *Cluster) Unlocked() *kube.Cluster { return c.with(c.unlocked()) }

// Intercept returns the cluster without its lock. Before the first write of an object, and after the caller has read
// what it needs, a function is called once: it writes what another liqoctl writes at that moment. Its error fails the
// write.
func (c *Cluster) Intercept(resource, name string, call func() error) *kube.Cluster {
	client := c.unlocked()
	var once sync.Once
	client.PrependReactor("*", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if !writesObject(action, name) {
			return false, nil, nil
		}
		var err error
		client.Unlock() // other requests do not wait for the call
		once.Do(func() { err = call() })
		client.Lock()
		return err != nil, nil, err
	})
	return c.with(client)
}

func (c *Cluster) with(client *fake.Clientset) *kube.Cluster {
	other := *c.Cluster
	other.Kube = client
	return &other
}

// unlocked returns a client with another lock than the cluster's.
func (c *Cluster) unlocked() *fake.Clientset {
	client := c.Client()
	_, lock := NewAPIServer(Config{})
	client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		read, isRead := action.(clienttesting.GetActionImpl)
		// Only a lock is created or updated.
		if isRead && read.Name == records.LockName || action.GetVerb() == "create" || action.GetVerb() == "update" {
			lease, err := lock.Invokes(action, nil)
			return true, lease, err
		}
		return false, nil, nil
	})
	return client
}

// writesObject reports whether an action writes the object with that name.
func writesObject(action clienttesting.Action, name string) bool {
	switch a := action.(type) {
	case clienttesting.CreateActionImpl:
		return a.Object.(metav1.Object).GetName() == name
	case clienttesting.UpdateActionImpl:
		return a.Object.(metav1.Object).GetName() == name
	case clienttesting.PatchActionImpl:
		return a.Name == name && len(a.PatchOptions.DryRun) == 0
	case clienttesting.DeleteActionImpl:
		return a.Name == name
	}
	return false
}
