// Package store keeps the ipam.Registry of a cluster in ConfigMap "ipam". Several writers may change it at once:
// every change is a compare-and-swap on the object's resourceVersion, and the one that comes second is
// computed again on what the first one left.
//
// What cannot be read is never overwritten: a ConfigMap that is damaged or of another schema version is an
// error for readers and writers alike. One with fields of a later release is read, and not changed.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
)

// Store reads and writes the registry of one cluster. It is safe for concurrent use.
type Store struct {
	configMaps typedcorev1.ConfigMapInterface
	namespace  string // for messages and new objects
}

// New returns the store in a namespace of a cluster. It does no request.
func New(client kubernetes.Interface, namespace string) *Store {
	return Over(client.CoreV1().ConfigMaps(namespace), namespace)
}

// Over returns the store among the ConfigMaps of a namespace. Of these it uses Get, Create and Update.
func Over(configMaps typedcorev1.ConfigMapInterface, namespace string) *Store {
	return &Store{configMaps: configMaps, namespace: namespace}
}

// Of several concurrent writers one succeeds. The others retry after a pause that doubles up to the longest, with a jitter of
// half. They give up after a time, not after a number of attempts: how many attempts fail depends on the speed of the API server.
const (
	patience     = 2 * time.Minute
	firstPause   = 10 * time.Millisecond
	longestPause = 2 * time.Second
)

// Load returns the registry, an empty one with the default pools where nothing was ever kept.
func (s *Store) Load(ctx context.Context) (*ipam.Registry, error) {
	current, err := s.get(ctx)
	if err != nil {
		return nil, err
	}
	return current.registry, nil
}

// Update changes the registry. The function is called on what is kept now, again each time that another writer
// was faster, and must therefore have no other effect. Its error ends the update and is returned as it is.
// When it changes nothing, nothing is written. After two minutes of conflicts the last one is returned.
func (s *Store) Update(ctx context.Context, change func(*ipam.Registry) error) error {
	pause := firstPause
	for began := time.Now(); ; {
		err := s.attempt(ctx, change)
		var lost *raceError
		if !errors.As(err, &lost) {
			return err
		}
		if time.Since(began) > patience {
			return s.failed("update", fmt.Errorf("other writers were faster, for %s: %w", patience, lost))
		}
		if err := idle(ctx, wait.Jitter(pause/2, 1)); err != nil {
			return s.failed("update", fmt.Errorf("other writers were faster: %w: %w", lost, err))
		}
		pause = min(2*pause, longestPause)
	}
}

// idle lets time pass. The error says why ctx ended before.
func idle(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raceError is a write refused because the object is no longer as it was read.
type raceError struct{ cause error }

func (e *raceError) Error() string { return e.cause.Error() }
func (e *raceError) Unwrap() error { return e.cause }

// attempt does one read, change and write.
func (s *Store) attempt(ctx context.Context, change func(*ipam.Registry) error) error {
	current, err := s.get(ctx)
	if err != nil {
		return err
	}
	before := Encode(current.registry)
	if err := change(current.registry); err != nil {
		return err
	}
	after := Encode(current.registry)
	if after == before {
		return nil
	}
	if len(current.unknown) > 0 {
		return s.failed("write", &records.UnknownFieldsError{Fields: current.unknown})
	}
	err = s.put(ctx, current.object, after)
	deleted := current.object != nil && apierrors.IsNotFound(err)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), deleted:
		return &raceError{err}
	default:
		return s.failed("write", err)
	}
}

// kept is the registry as it was read.
type kept struct {
	object   *corev1.ConfigMap // nil: there is none yet
	registry *ipam.Registry
	unknown  []string // fields of a later release
}

func (s *Store) get(ctx context.Context) (kept, error) {
	object, err := s.configMaps.Get(ctx, records.IPAMName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r, err := ipam.New(ipam.DefaultPools()...)
		return kept{registry: r}, err
	}
	if err != nil {
		return kept{}, s.failed("read", err)
	}
	text, ok := object.Data[records.DataKey]
	if !ok {
		return kept{}, s.failed("read", hint.With(fmt.Errorf("damaged document: no key %q", records.DataKey), records.DamageHint))
	}
	r, unknown, err := decode(text)
	if err != nil {
		return kept{}, s.failed("read", hint.With(err, records.DamageHint))
	}
	return kept{object, r, unknown}, nil
}

// put creates the ConfigMap or replaces its text, provided that it is still as it was read.
func (s *Store) put(ctx context.Context, object *corev1.ConfigMap, text string) error {
	if object == nil {
		created := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: records.IPAMName, Namespace: s.namespace},
		}
		fill(created, text)
		_, err := s.configMaps.Create(ctx, created, metav1.CreateOptions{})
		return err
	}
	changed := object.DeepCopy()
	fill(changed, text)
	_, err := s.configMaps.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// fill puts label and text into the object.
func fill(object *corev1.ConfigMap, text string) {
	metav1.SetMetaDataLabel(&object.ObjectMeta, records.LabelComponent, records.ComponentIPAM)
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data[records.DataKey] = text
}

func (s *Store) failed(operation string, err error) error {
	return fmt.Errorf("%s ConfigMap %s/%s: %w", operation, s.namespace, records.IPAMName, err)
}
