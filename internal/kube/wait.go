package kube

import (
	"context"
	"fmt"
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

// retryPause is how long Wait rests between a watch that ended, or was refused, and the next list.
const retryPause = 500 * time.Millisecond

// checkRest is how long Wait rests between two checks, in times of what the check takes.
const checkRest = 10

// Selection chooses objects of one kind: by name or by labels. The zero value is all of them. Namespaced kinds
// are looked for in the cluster's liqonet namespace.
type Selection struct {
	Name   string
	Labels string // a label selector
	Again  *Bell  // has the check made again, also when no object has changed; nil: nothing does
}

// Named selects one object.
func Named(name string) Selection { return Selection{Name: name} }

// Labelled selects the objects that a label selector matches.
func Labelled(selector string) Selection { return Selection{Labels: selector} }

// WaitError says what a wait had last seen when its context ended.
type WaitError struct {
	What    string // what was waited for
	Missing string // what was still missing
	Err     error  // why the wait ended, as a rule of the context
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("wait for %s: %s: %v", e.What, e.Missing, e.Err)
}

// Unwrap returns why the wait ended.
func (e *WaitError) Unwrap() error { return e.Err }

// Wait follows the selected objects until check finds nothing missing. check is called with all of them,
// sorted by name, at once and after every change; it returns what is still missing, "" when the wait is over,
// or an error that ends it. When ctx ends first the error is a *WaitError.
func Wait[T Object](ctx context.Context, c *Cluster, sel Selection, what string, check func(all []T) (missing string, err error)) error {
	var kind T
	r, err := c.resource(kind, c.Namespace)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return follow(ctx, c, r, sel, what, check)
}

// follow is Wait for a resource at hand.
func follow[T Object](ctx context.Context, c *Cluster, r resource, sel Selection, what string, check func(all []T) (string, error)) error {
	selector, err := labels.Parse(sel.Labels)
	if err != nil {
		return fmt.Errorf("wait for %s: label selector %q: %w", what, sel.Labels, err)
	}
	f := follower[T]{resource: r, name: sel.Name, labels: selector, again: sel.Again, check: check, missing: "nothing seen yet"}
	pass := f.pass
	if c.dry != nil {
		pass = f.once
	}
	for {
		done, err := pass(ctx)
		switch {
		case done && f.refused != nil:
			return fmt.Errorf("wait for %s: %w", what, f.refused)
		case done:
			return nil
		case ctx.Err() != nil:
			return &WaitError{What: what, Missing: f.missing, Err: context.Cause(ctx)}
		case c.dry != nil:
			return fmt.Errorf("wait for %s: %w", what, err)
		case err != nil && !passing(err):
			return fmt.Errorf("wait for %s in cluster %q: %w", what, c.Context, err)
		case err != nil:
			f.missing = err.Error()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// passing reports whether an API server's answer may be another one soon.
func passing(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonForbidden, metav1.StatusReasonUnauthorized, metav1.StatusReasonNotFound,
		metav1.StatusReasonBadRequest, metav1.StatusReasonInvalid, metav1.StatusReasonMethodNotAllowed:
		return false
	}
	return true
}

// follower keeps the selected objects up to date by a list and the watch that continues it.
type follower[T Object] struct {
	resource resource
	name     string
	labels   labels.Selector
	again    *Bell
	check    func([]T) (string, error)
	objects  map[string]T
	missing  string
	refused  error     // of check
	due      time.Time // before this, no other check
}

// pass lists, then watches until the check is content or refuses (done), an error occurs, or the watch ends, as API
// servers end every watch after a while.
func (f *follower[T]) pass(ctx context.Context) (done bool, err error) {
	again := f.again.next() // before the check, so that nothing is missed
	o, done, err := f.look(ctx)
	if done || err != nil {
		return done, err
	}
	w, err := f.resource.Watch(ctx, o)
	if err != nil {
		return false, err
	}
	defer w.Stop()
	var rested <-chan time.Time // when a check that was put off is due; nil: none was
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-again:
			again = f.again.next()
		case event, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
			if event.Type == watch.Error { // mostly "resource version too old": the next pass lists anew
				return false, apierrors.FromObject(event.Object)
			}
			f.put(event.Object, event.Type == watch.Deleted)
		case <-rested:
		}
		if wait := time.Until(f.due); wait > 0 {
			rested = time.After(wait)
		} else if rested = nil; f.evaluate() {
			return true, nil
		}
	}
}

// look lists. The options are those of the watch that continues the list.
func (f *follower[T]) look(ctx context.Context) (o metav1.ListOptions, done bool, err error) {
	o.LabelSelector = f.labels.String()
	if f.name != "" {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, f.name).String()
	}
	all, version, err := f.resource.list(ctx, o)
	if err != nil {
		return o, false, err
	}
	f.objects = make(map[string]T)
	for _, object := range all {
		f.put(object, false)
	}
	o.ResourceVersion = version
	return o, f.evaluate(), nil
}

// once is the pass of a dry run.
func (f *follower[T]) once(ctx context.Context) (done bool, err error) {
	if _, done, err = f.look(ctx); err == nil && !done {
		err = ErrLater
	}
	return done, err
}

// put adds an object, or removes it if it is gone or selected no more.
func (f *follower[T]) put(object runtime.Object, gone bool) {
	typed, ok := object.(T)
	if !ok {
		return
	}
	name := typed.GetName()
	if gone || f.name != "" && name != f.name || !f.labels.Matches(labels.Set(typed.GetLabels())) {
		delete(f.objects, name)
		return
	}
	f.objects[name] = typed
}

// evaluate reports whether the check is content, or refuses. Of a thousand objects, each of which changes, not every
// change is checked: a check that takes long is due again after as long as ten of them.
func (f *follower[T]) evaluate() (done bool) {
	start := time.Now()
	defer func() { f.due = time.Now().Add(checkRest * time.Since(start)) }()
	all := make([]T, 0, len(f.objects))
	for _, name := range slices.Sorted(maps.Keys(f.objects)) {
		all = append(all, f.objects[name])
	}
	f.missing, f.refused = f.check(all)
	return f.missing == "" || f.refused != nil
}
