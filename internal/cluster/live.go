package cluster

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Live are objects of a cluster as they are, to compare wanted ones with.
type Live struct {
	objects map[string]Object // by operand, without the namespace
	unread  map[string]bool   // kinds, and names of cluster-wide objects, that the user may not read
}

// ReadLive reads all objects of some kinds in liqonet's namespace, and cluster-wide ones by their names. What the user may
// not read is left out: nothing is said of it.
func (c *Cluster) ReadLive(ctx context.Context, kinds, named []Object) (Live, error) {
	live := Live{make(map[string]Object), make(map[string]bool)}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	read := func(what string, do func(resource) ([]Object, error), of Object, namespace string) {
		group.Go(func() error {
			r, err := c.resource(of, namespace)
			if err != nil {
				return err
			}
			all, err := do(r)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsForbidden(err):
				live.unread[what] = true
				return nil
			case err != nil && !apierrors.IsNotFound(err):
				return fmt.Errorf("read %s of cluster %q: %w", what, c.Context, err)
			}
			for _, o := range all {
				live.objects[title(o)] = o
			}
			return nil
		})
	}
	for _, kind := range kinds {
		read(kindName(kind), func(r resource) ([]Object, error) {
			all, _, err := r.list(ctx, metav1.ListOptions{})
			return all, err
		}, kind, c.Namespace)
	}
	for _, o := range named {
		read(title(o), func(r resource) ([]Object, error) {
			found, err := r.get(ctx, o.GetName())
			if err != nil {
				return nil, err
			}
			return []Object{found}, nil
		}, o, "")
	}
	return live, group.Wait()
}

// Object returns the object of the same kind and name; nil: there is none.
func (l Live) Object(like Object) Object { return l.objects[title(like)] }

// Compare says how the object is not as wanted, such as "Role gateway-b is missing"; "" if it is, or is not known. Without
// contents only labels are compared.
func (l Live) Compare(want Object, contents bool) (string, error) {
	name := title(want)
	if l.unread[kindName(want)] || l.unread[name] {
		return "", nil
	}
	have := l.objects[name]
	if have == nil {
		return name + " is missing", nil
	}
	wanted, err := content(want)
	if err != nil {
		return "", err
	}
	found, err := content(have)
	if err != nil {
		return "", err
	}
	if !contents {
		wanted, found = onlyLabels(wanted), onlyLabels(found)
	}
	c := lack{}
	c.compare("", found, wanted)
	if len(c.fields) == 0 {
		return "", nil
	}
	return name + " differs: " + c.fields[0], nil
}

func onlyLabels(fields map[string]any) map[string]any {
	about, _ := fields["metadata"].(map[string]any)
	return map[string]any{"metadata": map[string]any{"labels": about["labels"]}}
}

// lack collects the fields that are not as wanted. What is not wanted is others', or the API server's default: it counts in
// lists alone, where one element more can be a right more.
type lack struct{ fields []string }

func (d *lack) compare(path string, have, want any) {
	switch w := want.(type) {
	case nil:
		return
	case map[string]any:
		h, _ := have.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(w)) {
			d.compare(strings.TrimPrefix(path+"."+key, "."), h[key], w[key])
		}
		return
	case []any:
		if h, ok := have.([]any); ok && len(h) == len(w) {
			for i := range w {
				d.compare(fmt.Sprintf("%s[%d]", path, i), h[i], w[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(have, want) {
		d.fields = append(d.fields, fmt.Sprintf("%s: %s, want %s", path, quote(have), quote(want)))
	}
}

// title is such as "Role gateway-b".
func title(o Object) string { return kindName(o) + " " + o.GetName() }

func kindName(o Object) string {
	gvk, err := kindOf(o)
	if err != nil {
		return fmt.Sprintf("%T", o)
	}
	return gvk.Kind
}
