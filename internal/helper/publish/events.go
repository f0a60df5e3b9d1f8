package publish

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

	"liqonet.io/liqonet/internal/helper/wakeup"
	"liqonet.io/liqonet/internal/records"
)

// Reasons of events.
const (
	StateChanged  = "StateChanged"  // of a peering, as observed by a gateway
	Unencrypted   = "Unencrypted"   // a gateway opens a tunnel without encryption
	Failover      = "Failover"      // a gateway or a tunnel starts or stops carrying packets
	GatewayLost   = "GatewayLost"   // a witness node starts or stops missing the gateway
	DriftRestored = "DriftRestored" // external changes in the kernel
	RecordRefused = "RecordRefused"
)

// Limits of events.
const (
	eventsWaiting = 16 // for the API server, or for the rate limit
	eventRetry    = 10 * time.Second
	maxMessage    = 1000 // bytes; API servers take 1,024
	// Per helper: a policy permits no others. An API server keeps events for an hour.
	eventNames = 100
	eventTries = 20 // attempts to find an unused name
)

// Events writes Kubernetes Events outside of the loops: a slow or absent API server delays nothing else. It only
// creates events, while client-go's recorder also updates them: with a stolen token, no other component's event can be
// falsified. Events that have to wait are merged for each object and reason, with the last message and the count.
type Events struct {
	Source

	rate *rate.Limiter
	next int // number of the next name; for Run alone

	mu      sync.Mutex
	waiting []corev1.Event // without metadata; the oldest first
	wake    chan struct{}
	refused bool // the missing permission to create events was logged
}

// Source is the helper that writes events.
type Source struct {
	Client          kubernetes.Interface
	Namespace       string
	Component, Host string
	// Names is the prefix of the names of its events; no other helper has it.
	Names string
	Log   *slog.Logger
}

// NewEvents returns the writer of a helper, which may write burst events at once and then one after each pause.
func NewEvents(s Source, burst int, pause time.Duration) *Events {
	return &Events{
		Source: s,
		next:   rand.IntN(eventNames), //nolint:gosec // it suffices that few names are in use
		rate:   rate.NewLimiter(rate.Every(pause), burst), wake: make(chan struct{}, 1),
	}
}

// Brief returns a text for an event: one line of printable characters.
func Brief(text string) string {
	text = records.Brief(text)
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

// Add queues an event about an object of the namespace, a ConfigMap or Lease. It does not wait.
func (e *Events) Add(kind, name string, fine bool, reason, message string) {
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
		about := corev1.ObjectReference{Kind: kind, Namespace: e.Namespace, Name: name}
		e.waiting = append(e.waiting, corev1.Event{InvolvedObject: about, Reason: reason, FirstTimestamp: metav1.Now()})
	}
	w := &e.waiting[i]
	w.Type, w.Message, w.LastTimestamp = corev1.EventTypeWarning, Brief(message), metav1.Now()
	if fine {
		w.Type = corev1.EventTypeNormal
	}
	w.Count++
	wakeup.Notify(e.wake)
}

// Run writes events until ctx ends. It retries writes, except those that the API server rejects.
func (e *Events) Run(ctx context.Context) {
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

func (e *Events) some() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.waiting) > 0
}

func (e *Events) writeOldest(ctx context.Context) {
	e.mu.Lock()
	oldest := e.waiting[0]
	e.mu.Unlock()
	write, cancel := context.WithTimeout(ctx, writeTimeout)
	err := e.write(write, oldest)
	cancel()
	var refusal apierrors.APIStatus
	switch final := errors.As(err, &refusal) && refusal.Status().Code/100 == 4 && !apierrors.IsTooManyRequests(err); {
	case err != nil && !final: // the API server is away
		wakeup.Sleep(ctx, eventRetry)
		return
	case err != nil && !e.refused:
		e.Log.Warn("event not written, others will not be logged", "error", err)
		e.refused = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting[0].Count -= oldest.Count; e.waiting[0].Count == 0 {
		e.waiting = e.waiting[1:]
	}
}

// write creates an event. Without the UID of its object, kubectl describe would not show it.
func (e *Events) write(ctx context.Context, event corev1.Event) error {
	about := &event.InvolvedObject
	var found runtime.Object
	var err error
	switch o := (metav1.ListOptions{ResourceVersion: "0", FieldSelector: "metadata.name=" + about.Name}); about.Kind {
	case "Lease":
		found, err = e.Client.CoordinationV1().Leases(e.Namespace).List(ctx, o)
		about.APIVersion = "coordination.k8s.io/v1"
	default:
		found, err = e.Client.CoreV1().ConfigMaps(e.Namespace).List(ctx, o)
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
	event.Source = corev1.EventSource{Component: e.Component, Host: e.Host}
	event.ReportingController, event.ReportingInstance = e.Component, e.Host
	for range eventTries {
		event.ObjectMeta = metav1.ObjectMeta{Name: fmt.Sprintf("%s.%d", e.Names, e.next), Namespace: e.Namespace}
		e.next = (e.next + 1) % eventNames
		if _, err = e.Client.CoreV1().Events(e.Namespace).Create(ctx, &event, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return err
}
