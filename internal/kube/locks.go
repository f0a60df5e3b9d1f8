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

// Locks are the locks of all clusters to which a run writes. The first write takes all of them, in the order of the
// clusters' IDs. A run that waits for a lock holds none: two runs do not wait for each other, and a lock that is never
// released does not block changes of other clusters.
type Locks struct {
	all     []*lock
	timeout time.Duration

	mu       sync.Mutex
	taken    bool // all locks are held
	outdated bool // another run has written, or holds a lock, as found by the first write
	gone     bool // Stale has begun again because of a run that has come and gone
	lost     error
	end      context.CancelCauseFunc // ends the context of Begin
}

// NewLocks replaces clusters by copies whose writes require the locks of this run; nil clusters are ignored. It returns
// nil if the clusters already have the locks of a run, or keep writes in memory.
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

// Begin returns the context of a run that starts to read its facts. The context ends when a lock is lost, and when a
// write finds that the facts are outdated.
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

// Stale reports whether err may be the effect of another run that wrote while this one read its facts. The caller then
// calls Await and begins again.
func (r *Locks) Stale(ctx context.Context, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outdated || r.taken || r.lost != nil {
		return r.outdated && r.lost == nil
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) { // found by a dry run
		return true
	}
	if !r.gone && (namespaceIsGone(err) || r.passed(err)) {
		r.gone = true // once: without another run, an object may be missing, too
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

// passed reports whether another run may have come and gone unseen: there was no Lease, because nothing was installed
// or another run was removing it, and an object is not as it was read.
func (r *Locks) passed(err error) bool {
	return (errors.Is(err, ErrConflict) || apierrors.IsNotFound(err)) &&
		slices.ContainsFunc(r.all, func(l *lock) bool { return l.absent })
}

// ErrConflict ends a run whose next write would overwrite a change of another writer.
var ErrConflict = errors.New("changed by another writer during this run")

// namespaceIsGone reports whether an API server answered that a namespace does not exist.
func namespaceIsGone(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	return answered && apierrors.IsNotFound(err) && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "namespaces"
}

// Explain returns the error of a run: that of the lost lock if there is one, else err.
func (r *Locks) Explain(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || r.lost == nil {
		return err
	}
	return r.lost
}

// Await takes the locks, and waits for runs that hold them. note prints messages for the user.
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
		select { // two runs that each hold one of two locks must not retry at the same time
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

// tryAll takes the free locks, in order, up to the first that is not free, which it returns.
func (r *Locks) tryAll(ctx context.Context) (missed *lock) {
	for _, l := range r.all {
		if l.held {
			continue
		}
		switch err := l.try(ctx); {
		case err == nil:
			r.hold(ctx, l)
		case !apierrors.IsNotFound(err): // without a namespace there is nothing to lock
			return l
		}
	}
	return nil
}

// hold starts to renew a taken lock.
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

// lose ends the run, unless it has released the lock.
func (r *Locks) lose(l *lock, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.gone && r.lost == nil {
		r.lost = l.lost(err)
		r.end(r.lost)
	}
}

// take takes all locks if they have not changed since the facts were read.
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
		case apierrors.IsNotFound(err): // without a namespace there is nothing to lock
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

// Release releases the locks. If that fails, other runs take them over after their duration.
func (r *Locks) Release(ctx context.Context) {
	r.end(nil)
	r.giveBack(ctx)
}

// giveBack is Release for a run that continues. The locks are released concurrently: an API server that does not answer
// delays only its own lock.
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
	c.lock.read, c.lock.unread, c.lock.absent = true, nil, c.lock.absent || c.lock.seen == nil
	if apierrors.IsForbidden(err) { // the check of permissions reports it with others
		c.lock.unread, err = err, nil
	}
	return err
}

// Writes reports whether the run may write: no other run is known to hold the lock of one of its clusters.
func (c *Cluster) Writes() bool {
	if c.lock == nil {
		return true
	}
	c.locks.mu.Lock()
	defer c.locks.mu.Unlock()
	return !c.locks.outdated && c.locks.lost == nil
}

// LetGo releases the lock before the run deletes the Lease. Waiting runs take it when the Lease is deleted, or no
// longer renewed.
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

// guarded is a resource whose writes take the locks of the run first.
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

// apply sends an object as a dry run first: a run without changes needs no lock.
func (g guarded) apply(ctx context.Context, name string, data []byte, dry ...string) (Object, error) {
	if len(dry) > 0 {
		return g.resource.apply(ctx, name, data, dry...)
	}
	if !g.locks.holds() {
		live, err := g.get(ctx, name)
		switch _, namespace := g.like.(*corev1.Namespace); {
		case apierrors.IsNotFound(err) && namespace: // required by the Lease; a rollback must know
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

// holds reports whether the locks were taken, or never will be: the next write needs no dry run.
func (r *Locks) holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.taken || r.outdated || r.lost != nil
}
