package kube

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Live has the observed objects of a cluster, to be compared with desired ones.
type Live struct {
	objects map[string]Object // by operand, without the namespace
	unread  map[string]bool   // kinds and names of cluster-wide objects that the user may not read
}

// ReadLive reads all objects of some kinds in liqonet's namespace, and cluster-wide ones by name. Objects that the user
// may not read are omitted, and Compare does not report them.
func (c *Cluster) ReadLive(ctx context.Context, kinds, named []Object) (Live, error) {
	live := Live{make(map[string]Object), make(map[string]bool)}
	var mu sync.Mutex
	err := Each(ctx, slices.Concat(kinds, named), func(ctx context.Context, _ int, like Object) error {
		all, err := c.readLive(ctx, like)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case apierrors.IsForbidden(err):
			live.unread[title(like)] = true
			return nil
		case err != nil && !apierrors.IsNotFound(err):
			return err
		}
		for _, o := range all {
			live.objects[title(o)] = o
		}
		return nil
	})
	return live, err
}

// readLive reads a cluster-wide object; for one without a name, all objects of its kind in liqonet's namespace.
func (c *Cluster) readLive(ctx context.Context, like Object) ([]Object, error) {
	if like.GetName() == "" {
		return c.list(ctx, like, "")
	}
	t, err := c.find(ctx, like, "", like.GetName())
	if t.live == nil {
		return nil, err
	}
	return []Object{t.live}, err
}

// All returns all objects that were read.
func (l Live) All() []Object { return slices.Collect(maps.Values(l.objects)) }

// In returns the objects of that type that were read, sorted by name.
func In[T Object](l Live) (all []T) {
	for _, o := range l.objects {
		if one, ok := o.(T); ok {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// Readable reports whether the user may read objects of that kind.
func (l Live) Readable(like Object) bool { return !l.unread[kindOf(like).Kind] }

// Object returns the object of the same kind and name; nil if it does not exist.
func (l Live) Object(like Object) Object { return l.objects[title(like)] }

// Compare describes how the observed object differs from the desired one, such as "Role gateway-b is missing"; "" if it
// does not differ or could not be read. Without contents, only labels are compared.
func (l Live) Compare(want Object, contents bool) string {
	name := title(want)
	if l.unread[kindOf(want).Kind] || l.unread[name] {
		return ""
	}
	have := l.objects[name]
	if have == nil {
		return name + " is missing"
	}
	wanted, found := content(want), content(have)
	if !contents {
		wanted, found = onlyLabels(wanted), onlyLabels(found)
	}
	if fields := lacking(found, wanted); len(fields) > 0 {
		return name + " differs: " + fields[0]
	}
	return ""
}

func onlyLabels(fields map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": metadata(fields)["labels"]}}
}

// title returns a text such as "Role gateway-b", or the kind for an object without a name.
func title(o Object) string { return strings.TrimSpace(kindOf(o).Kind + " " + o.GetName()) }
