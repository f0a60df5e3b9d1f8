//go:build linux

package helper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/records"
)

// childVariable in the environment makes the test program a helper.
const childVariable = "LIQONET_TEST_HELPER"

// childConfig is the first line that a child reads: which helper it is. The other lines are orders.
type childConfig struct {
	Node    *Node    // nil: it is a gateway
	Gateway *Gateway // without Env, as Node
}

// order is something that the child does: it puts an object into its cluster, which is in its memory, or tells
// what it has used. Zero values are left out.
type order struct {
	ConfigMap *corev1.ConfigMap
	Lease     *coordinationv1.Lease
	NodeMade  *corev1.Node
	PodMade   *corev1.Pod
	Usage     bool
}

// news is what a child tells: objects of its cluster that are new or changed, and what it has used.
type news struct {
	ConfigMap *corev1.ConfigMap
	Lease     *coordinationv1.Lease
	CPU       time.Duration // since the child began, user and system
}

// runChild is a helper that reads its cluster's objects from in and writes changed ones to out.
func runChild(in io.Reader, out, log io.Writer) error {
	lines := json.NewDecoder(in)
	var config childConfig
	if err := lines.Decode(&config); err != nil {
		return err
	}
	client := fake.NewClientset()
	env := Env{
		Client: client, Namespace: testNamespace, HealthAddress: "127.0.0.1:6093",
		Log: NewLog(log, slog.LevelInfo),
	}
	var mu sync.Mutex // guards out
	tell := func(n news) error {
		mu.Lock()
		defer mu.Unlock()
		return json.NewEncoder(out).Encode(n)
	}
	group, ctx := errgroup.WithContext(context.Background())
	group.Go(func() error { return tellChanges(ctx, client, tell) })
	group.Go(func() error {
		if config.Node != nil {
			config.Node.Env = env
			return config.Node.Run(ctx)
		}
		config.Gateway.Env = env
		return config.Gateway.Run(ctx)
	})
	group.Go(func() error {
		for {
			var o order
			if err := lines.Decode(&o); err != nil { // the end of the test, as a rule
				if config.Gateway != nil { // of a peering that is not removed it would wait for its next pod
					name := records.PeeringName(config.Gateway.ID.Peering)
					_ = client.CoreV1().ConfigMaps(testNamespace).Delete(ctx, name, metav1.DeleteOptions{})
				}
				return err
			}
			if err := o.execute(ctx, client, tell); err != nil {
				return err
			}
		}
	})
	if err := group.Wait(); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (o order) execute(ctx context.Context, client kubernetes.Interface, tell func(news) error) error {
	var err error
	switch {
	case o.ConfigMap != nil:
		maps := client.CoreV1().ConfigMaps(testNamespace)
		if _, err = maps.Update(ctx, o.ConfigMap, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = maps.Create(ctx, o.ConfigMap, metav1.CreateOptions{})
		}
	case o.Lease != nil:
		leases := client.CoordinationV1().Leases(testNamespace)
		if _, err = leases.Update(ctx, o.Lease, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
			_, err = leases.Create(ctx, o.Lease, metav1.CreateOptions{})
		}
	case o.NodeMade != nil:
		_, err = client.CoreV1().Nodes().Create(ctx, o.NodeMade, metav1.CreateOptions{})
	case o.PodMade != nil:
		_, err = client.CoreV1().Pods(o.PodMade.Namespace).Create(ctx, o.PodMade, metav1.CreateOptions{})
	case o.Usage:
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			return err
		}
		return tell(news{CPU: time.Duration(u.Utime.Nano() + u.Stime.Nano())})
	}
	return err
}

// tellChanges tells of every change of ConfigMaps and Leases until ctx ends.
func tellChanges(ctx context.Context, client kubernetes.Interface, tell func(news) error) error {
	maps, err := client.CoreV1().ConfigMaps(testNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer maps.Stop()
	leases, err := client.CoordinationV1().Leases(testNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer leases.Stop()
	for {
		var e watch.Event
		select {
		case <-ctx.Done():
			return nil
		case e = <-maps.ResultChan():
		case e = <-leases.ResultChan():
		}
		var n news
		switch o := e.Object.(type) {
		case *corev1.ConfigMap:
			n.ConfigMap = o
		case *coordinationv1.Lease:
			n.Lease = o
		default:
			return fmt.Errorf("unexpected %s of %T", e.Type, e.Object)
		}
		if err := tell(n); err != nil {
			return err
		}
	}
}
