package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Locks are those of all clusters that one run writes to. Its first write takes all of them, in the order of the
// clusters' IDs. While it waits for one it holds none: two runs do not wait for each other, and whoever keeps the lock
// of one cluster keeps nobody from changing another.
type Locks struct {
	all     []*lock
	timeout time.Duration

	mu       sync.Mutex
	taken    bool // writes are allowed
	outdated bool // the first write found that another run has written, or holds a lock
	lost     error
	end      context.CancelCauseFunc // of what runs now
}

// NewLocks replaces clusters by ones whose writes need the locks of this run; what points to nil is left out. It
// returns nil where the clusters have the locks of a run already, or keep writes in memory.
func NewLocks(clusters ...**Cluster) *Locks {
	r := &Locks{end: func(error) {}}
	for _, at := range clusters {
		c := *at
		switch {
		case c == nil:
			continue
		case c.lock != nil, c.dry != nil:
			return nil
		}
		l := &lock{cluster: c, options: c.Locking, holder: fmt.Sprintf("%s, run %.8s", cmp.Or(c.Locking.Holder, FieldManager), rand.Text())}
		l.options.Duration = cmp.Or(l.options.Duration, DefaultLockDuration)
		r.timeout = cmp.Or(r.timeout, l.options.Timeout, DefaultLockTimeout)
		r.all = append(r.all, l)
		locked := *c
		locked.lock, locked.locks = l, r
		*at = &locked
	}
	return r
}

// Begin returns the context of a run that reads its facts now. It ends with a lock that is lost, and where a write
// finds that the facts are outdated.
func (r *Locks) Begin(ctx context.Context) context.Context {
	ctx, end := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(nil)
	r.end, r.outdated = end, false
	if r.lost != nil {
		end(r.lost)
	}
	for _, l := range r.all {
		l.read = l.held
	}
	return ctx
}

// Stale reports whether a run failed with err because of what another run wrote, or may have written, while it read its
// facts: it is to Await the locks and begin again.
func (r *Locks) Stale(ctx context.Context, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outdated || r.taken || r.lost != nil {
		return r.outdated && r.lost == nil
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) { // a dry run of the comparison found it so
		return true
	}
	return slices.ContainsFunc(r.all, func(l *lock) bool {
		before := l.seen
		if !l.read || l.unread != nil || l.held {
			return false
		}
		return holderOf(before) != "" || l.look(ctx) == nil && versionOf(l.seen) != versionOf(before)
	})
}

// Explain returns the error of a run; a lock that was lost is its cause.
func (r *Locks) Explain(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || r.lost == nil {
		return err
	}
	return r.lost
}

// Await takes the locks, and waits for runs that hold them. note gets what to tell the user.
func (r *Locks) Await(ctx context.Context, note func(string)) error {
	ctx = r.Begin(ctx)
	if err := r.order(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("not released within %s (--lock-timeout)", r.timeout))
	defer cancel()
	for {
		missed := r.tryAll(ctx)
		if missed == nil {
			break
		}
		r.giveBack(ctx)
		select { // two runs with one lock of two each must not try again in step
		case <-ctx.Done():
		case <-time.After(wait.Jitter(lockRetry, 2)):
		}
		if err := missed.await(ctx, note); err != nil {
			return err
		}
		if holderOf(missed.seen) == missed.holder {
			r.hold(ctx, missed)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = !slices.ContainsFunc(r.all, func(l *lock) bool { return !l.held })
	return nil
}

// tryAll takes the locks that are free, in order, until one is not, and returns that one.
func (r *Locks) tryAll(ctx context.Context) (missed *lock) {
	for _, l := range r.all {
		if l.held {
			continue
		}
		switch err := l.try(ctx); {
		case err == nil:
			r.hold(ctx, l)
		case !apierrors.IsNotFound(err): // there is no namespace, and nothing to lock
			return l
		}
	}
	return nil
}

// hold renews a lock that was taken.
func (r *Locks) hold(ctx context.Context, l *lock) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	l.held, l.stop = true, func() { stop(); <-ended }
	go func() {
		defer close(ended)
		if err := l.keep(ctx); err != nil {
			r.lose(l, err)
		}
	}()
}

// lose ends the run, unless it has let the lock go.
func (r *Locks) lose(l *lock, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.gone && r.lost == nil {
		r.lost = l.lost(err)
		r.end(r.lost)
	}
}

// take takes all locks, if they are as they were when the facts were read.
func (r *Locks) take(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.lost != nil:
		return r.lost
	case r.taken:
		return nil
	case r.outdated:
		return errWritten
	}
	if err := r.order(ctx); err != nil {
		return err
	}
	everywhere := true
	for _, l := range r.all {
		if l.held {
			continue
		}
		err := l.take(ctx)
		switch {
		case errors.Is(err, errWritten):
			r.outdated = true
			r.end(errWritten)
			return err
		case apierrors.IsNotFound(err): // there is no namespace, and nothing to lock before there is one
			everywhere = false
		case err != nil:
			return err
		default:
			r.hold(ctx, l)
		}
	}
	r.taken = everywhere
	return nil
}

// order sorts the locks by the clusters' IDs.
func (r *Locks) order(ctx context.Context) (err error) {
	if len(r.all) == 1 {
		return nil
	}
	for _, l := range r.all {
		if l.id != "" {
			continue
		}
		if l.id, err = l.cluster.ID(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(r.all, func(a, b *lock) int { return strings.Compare(a.id, b.id) })
	return nil
}

// Release gives the locks back. A lock that cannot be is taken over after its duration.
func (r *Locks) Release(ctx context.Context) {
	r.end(nil)
	r.giveBack(ctx)
}

// giveBack is Release for a run that goes on. No lock waits for the API server of another.
func (r *Locks) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, l := range r.all {
		all.Go(func() {
			if l.held && (l.gone || r.isLost()) {
				l.stop()
				return
			}
			l.giveBack(ctx)
		})
	}
	all.Wait()
}

func (r *Locks) isLost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost != nil
}

// readLock reads the Lease before the facts of a run are read.
func (c *Cluster) readLock(ctx context.Context) error {
	if c.lock == nil || c.dry != nil || c.lock.read {
		return nil
	}
	err := c.lock.look(ctx)
	c.lock.read, c.lock.unread = true, nil
	if apierrors.IsForbidden(err) { // the check of permissions says what else is missing
		c.lock.unread, err = err, nil
	}
	return err
}

// Writes reports whether the run may write: no other run has the lock of one of its clusters, as far as it knows.
func (c *Cluster) Writes() bool {
	if c.lock == nil {
		return true
	}
	c.locks.mu.Lock()
	defer c.locks.mu.Unlock()
	return !c.locks.outdated && c.locks.lost == nil
}

// LetGo lets the lock go, as the run is about to delete the Lease. Runs that wait take it once the Lease is gone, or
// not renewed.
func (c *Cluster) LetGo(ctx context.Context) error {
	if c.lock == nil || c.dry != nil {
		return nil
	}
	if err := c.locks.take(ctx); err != nil {
		return err
	}
	c.locks.mu.Lock()
	defer c.locks.mu.Unlock()
	c.lock.gone = true
	return nil
}

// guarded is a resource that takes the locks of a run before it changes anything.
type guarded struct {
	resource
	locks *Locks
	like  Object
}

func (g guarded) create(ctx context.Context, o Object) (Object, error) {
	if err := g.locks.take(ctx); err != nil {
		return nil, err
	}
	return g.resource.create(ctx, o)
}

// Delete implements resource.
func (g guarded) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := g.locks.take(ctx); err != nil {
		return err
	}
	return g.resource.Delete(ctx, name, o)
}

// apply sends an object that would change nothing as a dry run alone: a run without changes needs no lock.
func (g guarded) apply(ctx context.Context, name string, data []byte, dry ...string) (Object, error) {
	if len(dry) > 0 {
		return g.resource.apply(ctx, name, data, dry...)
	}
	if !g.locks.holds() {
		live, err := g.get(ctx, name)
		switch _, namespace := g.like.(*corev1.Namespace); {
		case apierrors.IsNotFound(err) && namespace: // the Lease needs it; a rollback must know whether it was made
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
			defer cancel()
			return g.resource.apply(ctx, name, data)
		case err == nil:
			after, err := g.resource.apply(ctx, name, data, metav1.DryRunAll)
			if err != nil || len(Differences(live, after)) == 0 {
				return after, err
			}
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	if err := g.locks.take(ctx); err != nil {
		return nil, err
	}
	return g.resource.apply(ctx, name, data)
}

// holds reports whether the locks were taken, or never will be: what is written next needs no look at what it changes.
func (r *Locks) holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken || r.outdated || r.lost != nil
}
