package kube

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// retryPause is the pause between a watch that ended, or was refused, and the next list.
const retryPause = 500 * time.Millisecond

// yieldRest is the pause after the body of a loop over Watch, in multiples of the body's duration.
const yieldRest = 10

// Selection chooses objects of one kind: by name or by labels. The zero value is all of them. Namespaced kinds
// are looked for in the cluster's liqonet namespace.
type Selection struct {
	Name   string
	Labels string        // a label selector
	Every  time.Duration // yields the objects again at this interval, without a change; 0: never
}

// Named selects one object.
func Named(name string) Selection { return Selection{Name: name} }

// Labelled selects the objects that a label selector matches.
func Labelled(selector string) Selection { return Selection{Labels: selector} }

// Watch yields the selected objects, sorted by name: immediately, and after changes, until ctx ends. If the loop's
// body takes long, several changes are yielded together. Watch also yields each error of the API server: it retries if
// the error may be temporary, and ends otherwise. A dry run yields the objects once, and then ErrLater.
func Watch[T Object](ctx context.Context, c *Cluster, sel Selection) iter.Seq2[[]T, error] {
	var kind T
	r, _, err := c.resource(kind, c.Namespace)
	if err != nil {
		return func(yield func([]T, error) bool) { yield(nil, err) }
	}
	return watchResource[T](ctx, r, sel)
}

// watchResource is Watch with an existing client.
func watchResource[T Object](ctx context.Context, r resource, sel Selection) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		selector, err := labels.Parse(sel.Labels)
		if err != nil {
			yield(nil, fmt.Errorf("label selector %q: %w", sel.Labels, err))
			return
		}
		w := watcher[T]{Selection: sel, resource: r, matches: selector.Matches, body: yield}
		for {
			err := w.pass(ctx)
			if ctx.Err() != nil || w.left || err != nil && (!yield(nil, err) || !temporary(err)) {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(retryPause):
			}
		}
	}
}

// temporary reports whether a repeated request may succeed after an error.
func temporary(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized, metav1.StatusReasonNotFound,
		metav1.StatusReasonBadRequest, metav1.StatusReasonInvalid, metav1.StatusReasonMethodNotAllowed:
		return false
	}
	return !errors.Is(err, ErrLater)
}

// watcher keeps the selected objects up to date by a list and the watch that continues it.
type watcher[T Object] struct {
	Selection
	resource resource
	matches  func(labels.Labels) bool
	body     func([]T, error) bool // of the loop
	objects  map[string]T          // by name
	left     bool                  // the body has left the loop
	due      time.Time             // when the body may be called again
}

// pass lists and watches until the body leaves the loop, an error occurs, or the watch ends, as API servers end every
// watch after a while.
func (w *watcher[T]) pass(ctx context.Context) error {
	every := time.Tick(w.Every)
	o := metav1.ListOptions{LabelSelector: w.Labels}
	if w.Name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, w.Name).String()
	}
	all, version, err := w.resource.list(ctx, o)
	if err != nil {
		return err
	}
	w.objects = make(map[string]T)
	for _, object := range all {
		w.put(object, false)
	}
	if w.yield(); w.left {
		return nil
	}
	o.ResourceVersion = version
	changes, err := w.resource.Watch(ctx, o)
	if err != nil {
		return err
	}
	defer changes.Stop()
	var rested <-chan time.Time // when a delayed yield is due; nil: none is delayed
	for !w.left {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every:
		case event, open := <-changes.ResultChan():
			if !open {
				return nil
			}
			if event.Type == watch.Error { // mostly "resource version too old": the next pass lists again
				return apierrors.FromObject(event.Object)
			}
			w.put(event.Object, event.Type == watch.Deleted)
		case <-rested:
		}
		if wait := time.Until(w.due); wait > 0 {
			rested = time.After(wait)
			continue
		}
		rested = nil
		w.yield()
	}
	return nil
}

// put adds an object, or removes it if it was deleted or is no longer selected.
func (w *watcher[T]) put(object runtime.Object, deleted bool) {
	typed, ok := object.(T)
	if !ok {
		return
	}
	name := typed.GetName()
	if deleted || w.Name != "" && name != w.Name || !w.matches(labels.Set(typed.GetLabels())) {
		delete(w.objects, name)
		return
	}
	w.objects[name] = typed
}

// yield calls the body with all objects. It is due again after ten times the body's duration: otherwise a thousand
// objects that change would cost a thousand calls.
func (w *watcher[T]) yield() {
	start, all := time.Now(), make([]T, 0, len(w.objects))
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		all = append(all, w.objects[name])
	}
	w.left = !w.body(all, nil)
	w.due = time.Now().Add(yieldRest * time.Since(start))
}
