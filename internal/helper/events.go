//go:build linux

package helper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/records"
)

// Reasons of events.
const (
	stateChanged  = "StateChanged"  // of a peering, as observed by a gateway
	failover      = "Failover"      // a gateway or a tunnel starts or stops carrying packets
	gatewayLost   = "GatewayLost"   // a witness node starts or stops missing the gateway
	driftRestored = "DriftRestored" // external changes in the kernel
	recordRefused = "RecordRefused"
)

// Limits of events. A gateway has more events than a node, and there are fewer gateways.
const (
	gatewayBurst, gatewayPause = 10, time.Minute
	nodeBurst, nodePause       = 3, 5 * time.Minute
	eventsWaiting              = 16 // for the API server, or for the rate limit
	eventRetry                 = 10 * time.Second
	maxMessage                 = 1000 // bytes; API servers take 1,024
	// Per helper: a policy permits no others. An API server keeps events for an hour.
	eventNames = 100
	eventTries = 20 // attempts to find an unused name
)

// events writes Kubernetes Events outside of the loops: a slow or absent API server delays nothing else. It only
// creates events, while client-go's recorder also updates them: with a stolen token, no other component's event can be
// falsified. Events that have to wait are merged for each object and reason, with the last message and the count.
type events struct {
	client          kubernetes.Interface
	namespace       string
	component, host string
	log             *slog.Logger
	rate            *rate.Limiter
	names           string // prefix of the names of events
	next            int    // number of the next name; for run alone

	mu      sync.Mutex
	waiting []corev1.Event // without metadata; the oldest first
	wake    chan struct{}
	refused bool // the missing permission to create events was logged
}

// newEvents returns the writer of a helper, which may write burst events at once and then one after each pause. Their
// names begin with host.
func newEvents(e Env, component, host string, burst int, pause time.Duration) *events {
	return &events{
		client: e.Client, namespace: e.Namespace, component: component, host: host, log: e.Log, names: host,
		next: rand.IntN(eventNames), //nolint:gosec // it suffices that few names are in use
		rate: rate.NewLimiter(rate.Every(pause), burst), wake: make(chan struct{}, 1),
	}
}

// brief returns a text for an event: one line of printable characters.
func brief(text string) string {
	text = records.Brief(text)
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// add queues an event about an object of the namespace, a ConfigMap or Lease. It does not wait.
func (e *events) add(kind, name string, fine bool, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.waiting, func(w corev1.Event) bool {
		return w.InvolvedObject.Kind == kind && w.InvolvedObject.Name == name && w.Reason == reason
	})
	if i < 0 {
		if len(e.waiting) == eventsWaiting {
			return
		}
		i = len(e.waiting)
		about := corev1.ObjectReference{Kind: kind, Namespace: e.namespace, Name: name}
		e.waiting = append(e.waiting, corev1.Event{InvolvedObject: about, Reason: reason, FirstTimestamp: metav1.Now()})
	}
	w := &e.waiting[i]
	w.Type, w.Message, w.LastTimestamp = corev1.EventTypeWarning, brief(message), metav1.Now()
	if fine {
		w.Type = corev1.EventTypeNormal
	}
	w.Count++
	notify(e.wake)
}

// run writes events until ctx ends. It retries writes, except those that the API server rejects.
func (e *events) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		}
		for e.some() && e.rate.Wait(ctx) == nil {
			e.writeOldest(ctx)
		}
	}
}

func (e *events) some() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0
}

func (e *events) writeOldest(ctx context.Context) {
	e.mu.Lock()
	oldest := e.waiting[0]
	e.mu.Unlock()
	write, cancel := context.WithTimeout(ctx, writeTimeout)
	err := e.write(write, oldest)
	cancel()
	var refusal apierrors.APIStatus
	switch final := errors.As(err, &refusal) && refusal.Status().Code/100 == 4 && !apierrors.IsTooManyRequests(err); {
	case err != nil && !final: // the API server is away
		select {
		case <-ctx.Done():
		case <-time.After(eventRetry):
		}
		return
	case err != nil && !e.refused:
		e.log.Warn("event not written, others will not be logged", "error", err)
		e.refused = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting[0].Count -= oldest.Count; e.waiting[0].Count == 0 {
		e.waiting = e.waiting[1:]
	}
}

// write creates an event. Without the UID of its object, kubectl describe would not show it.
func (e *events) write(ctx context.Context, event corev1.Event) error {
	about := &event.InvolvedObject
	var found runtime.Object
	var err error
	switch o := (selected{name: about.Name}).options(metav1.ListOptions{ResourceVersion: "0"}); about.Kind {
	case "Lease":
		found, err = e.client.CoordinationV1().Leases(e.namespace).List(ctx, o)
		about.APIVersion = "coordination.k8s.io/v1"
	default:
		found, err = e.client.CoreV1().ConfigMaps(e.namespace).List(ctx, o)
		about.APIVersion = "v1"
	}
	if err != nil {
		return err
	}
	err = meta.EachListItem(found, func(o runtime.Object) error {
		if m, ok := o.(metav1.Object); ok && m.GetName() == about.Name {
			about.UID = m.GetUID()
		}
		return nil
	})
	if err != nil || about.UID == "" {
		return err // the object no longer exists
	}
	event.Source = corev1.EventSource{Component: e.component, Host: e.host}
	event.ReportingController, event.ReportingInstance = e.component, e.host
	for range eventTries {
		event.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", e.names, e.next), Namespace: e.namespace}
		e.next = (e.next + 1) % eventNames
		if _, err = e.client.CoreV1().Events(e.namespace).Create(ctx, &event, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return err
}
