package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// ErrLater ends a wait in a dry run for something that does not exist yet: it would come into existence only after real
// writes.
var ErrLater = errors.New("known after apply")

// DryRun returns the cluster for a dry run. Writes are kept in memory, where later reads find them. The API server is
// asked for defaulting and admission, and changes nothing. Waits end immediately: see ErrLater.
func (c *Cluster) DryRun() *Cluster {
	if c.dry != nil && c.dry.shared {
		return c
	}
	d := *c
	d.dry = &dryRun{objects: make(map[string]plannedObject)}
	return &d
}

// SharedDryRun returns a DryRun for several operations: each finds the writes of those before it.
func (c *Cluster) SharedDryRun() *Cluster {
	d := c.DryRun()
	d.dry.shared = true
	return d
}

// SharesDryRun reports whether objects may be incomplete, as an operation before has planned them.
func (c *Cluster) SharesDryRun() bool { return c.dry != nil && c.dry.shared }

// Live returns the cluster without a dry run's writes.
func (c *Cluster) Live() *Cluster {
	live := *c
	live.dry = nil
	return &live
}

// Rendering returns a DryRun that keeps objects as they are applied. The API server is not asked and adds no defaults.
func (c *Cluster) Rendering() *Cluster {
	d := c.DryRun()
	d.dry.verbatim = true
	return d
}

// Rendered returns liqonet's objects after a dry run, in the order in which they are applied and in the form that a
// client sends. Objects that were neither read nor written are not included.
func (c *Cluster) Rendered() []map[string]any {
	c.dry.mu.Lock()
	defer c.dry.mu.Unlock()
	var wanted []Object
	for _, key := range slices.Sorted(maps.Keys(c.dry.objects)) {
		if o := c.dry.objects[key].after; o != nil && ours(o) {
			wanted = append(wanted, o)
		}
	}
	slices.SortStableFunc(wanted, func(a, b Object) int { return waveOf(a) - waveOf(b) })
	all := make([]map[string]any, len(wanted))
	for i, o := range wanted {
		all[i] = document(o)
		for _, key := range []string{"creationTimestamp", "generation"} {
			delete(metadata(all[i]), key)
		}
	}
	return all
}

// IsDryRun reports whether writes stay in memory.
func (c *Cluster) IsDryRun() bool { return c.dry != nil }

// Planned is a change of a dry run, with the object before and after it; nil: it does not exist.
type Planned struct {
	Change
	Before, After Object
}

// Planned returns the combined changes of a dry run, in the order in which objects are applied.
func (c *Cluster) Planned() []Planned {
	c.dry.mu.Lock()
	defer c.dry.mu.Unlock()
	var all []Planned
	for _, key := range slices.Sorted(maps.Keys(c.dry.objects)) {
		o := c.dry.objects[key]
		p := Planned{Before: o.before, After: o.after}
		switch {
		case o.before == nil && o.after == nil:
			continue
		case o.before == nil:
			p.Change = describe(o.after).became(Created)
		case o.after == nil:
			p.Change = describe(o.before).became(Deleted)
		default:
			p.Change = describe(o.after).became(Changed)
			p.Fields = Differences(o.before, o.after)
		}
		if p.Action != Changed || len(p.Fields) > 0 {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b Planned) int { return a.wave() - b.wave() })
	return all
}

func (p Planned) wave() int {
	if p.After == nil {
		return waves + waves - waveOf(p.Before)
	}
	return waveOf(p.After)
}

// dryRun stores the objects that a dry run has read or written.
type dryRun struct {
	verbatim bool // see Rendering
	shared   bool // see SharedDryRun

	mu      sync.Mutex
	objects map[string]plannedObject // by kind, namespace and name
}

// plannedObject is an object as first read and after the dry run's writes; nil: it does not exist.
type plannedObject struct{ before, after Object }

// dryResource is the client of a kind in a dry run.
type dryResource struct {
	resource
	run    *dryRun
	prefix string // of the keys of its objects
}

// read returns the stored object. The first time, it reads it from the API server.
func (d dryResource) read(ctx context.Context, name string) (plannedObject, error) {
	d.run.mu.Lock()
	o, known := d.run.objects[d.prefix+name]
	d.run.mu.Unlock()
	if known {
		return o, nil
	}
	found, err := d.resource.get(ctx, name)
	if apierrors.IsNotFound(err) {
		found, err = nil, nil
	}
	if err != nil {
		return plannedObject{}, err
	}
	d.write(name, found, found)
	return plannedObject{found, found}, nil
}

// write stores an object with its state before the dry run; nil: it does not exist.
func (d dryResource) write(name string, before, after Object) {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	d.run.objects[d.prefix+name] = plannedObject{before, after}
}

// invalidate makes the next read use the API server.
func (d dryResource) invalidate(name string) {
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	delete(d.run.objects, d.prefix+name)
}

func (d dryResource) get(ctx context.Context, name string) (Object, error) {
	o, err := d.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if o.after == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
	}
	return o.after.DeepCopyObject().(Object), nil
}

func (d dryResource) list(ctx context.Context, o metav1.ListOptions) ([]Object, string, error) {
	all, version, err := d.resource.list(ctx, o)
	if err != nil {
		return nil, "", err
	}
	byLabel, err := labels.Parse(o.LabelSelector)
	if err != nil {
		return nil, "", err
	}
	byField, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, "", err
	}
	d.run.mu.Lock()
	defer d.run.mu.Unlock()
	all = slices.DeleteFunc(all, func(o Object) bool {
		_, known := d.run.objects[d.prefix+o.GetName()]
		return known
	})
	for key, o := range d.run.objects {
		name, ours := strings.CutPrefix(key, d.prefix)
		if ours && o.after != nil && byLabel.Matches(labels.Set(o.after.GetLabels())) && byField.Matches(fields.Set{metav1.ObjectNameField: name}) {
			all = append(all, o.after.DeepCopyObject().(Object))
		}
	}
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, version, nil
}

func (dryResource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, ErrLater
}

func (d dryResource) create(ctx context.Context, object Object) (Object, error) {
	o, err := d.read(ctx, object.GetName())
	if err != nil {
		return nil, err
	}
	if o.after != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
	}
	d.write(object.GetName(), o.before, object)
	return object, nil
}

// apply sends existing objects to the API server for defaults. Objects that do not exist get none.
func (d dryResource) apply(ctx context.Context, name string, data []byte, _ ...string) (Object, error) {
	o, err := d.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if o.before == nil || d.run.verbatim {
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, err
		}
		after := decoded.(Object) //nolint:forcetypeassert // it was encoded from an Object
		d.write(name, o.before, after)
		return after, nil
	}
	for range maxDryApplies {
		after, err := d.resource.apply(ctx, name, data, metav1.DryRunAll)
		if apierrors.IsConflict(err) {
			d.invalidate(name) // changed since the read: the caller retries with a new read
		}
		if err != nil {
			return nil, err
		}
		d.write(name, o.before, after)
		if after.GetResourceVersion() == o.before.GetResourceVersion() {
			return after, nil
		}
		// Another writer has changed the object since it was read: that is no part of the plan.
		if o.before, err = d.resource.get(ctx, name); err != nil {
			return nil, err
		}
	}
	return d.get(ctx, name)
}

// maxDryApplies is the number of attempts to apply an object that others keep changing.
const maxDryApplies = 5

func (d dryResource) Delete(ctx context.Context, name string, _ metav1.DeleteOptions) error {
	o, err := d.read(ctx, name)
	if err == nil {
		d.write(name, o.before, nil)
	}
	return err
}
