package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
)

// LockOptions say how runs lock a cluster against each other. Zero values are the defaults.
type LockOptions struct {
	Holder   string        // what other runs are told of this one, such as "alice@host: network connect"
	Timeout  time.Duration // of the wait for other runs; by default DefaultLockTimeout
	Duration time.Duration // a lock that does not change for so long is taken over; by default DefaultLockDuration
	Break    bool          // take the lock of another run at once
}

// Defaults of LockOptions.
const (
	DefaultLockTimeout  = 10 * time.Minute
	DefaultLockDuration = 15 * time.Second
)

// lock is a Lease in liqonet's namespace: the run that it names as its holder is the only one that writes to the
// cluster. client-go's leader election is no help: it reads the Lease itself, and so cannot take it provided that
// nobody has written since facts were read.
type lock struct {
	cluster *Cluster // without the lock
	options LockOptions
	id      string // of the cluster; "" where the run has one
	holder  string // this run

	read   bool                  // seen is known
	seen   *coordinationv1.Lease // as it was before the facts were read, or last; nil: there is none
	unread error                 // why it is not known
	held   bool
	stop   func() // renewing, while it is held
	gone   bool   // it was let go: the run removes the Lease
}

// holderOf is the run that holds a lock; "": none.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return value(lease.Spec.HolderIdentity)
}

// nameOf is the holder of a lock in messages: others write it, at any length.
func nameOf(lease *coordinationv1.Lease) string { return fmt.Sprintf("%.200s", holderOf(lease)) }

// versionOf is the version of a Lease; "": there is none.
func versionOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return lease.ResourceVersion
}

// errWritten says that another run has written since this one has read its facts, or may still write.
var errWritten = errors.New("another run has written to the cluster")

// look reads the Lease.
func (l *lock) look(ctx context.Context) (err error) {
	l.seen, err = l.cluster.Kube.CoordinationV1().Leases(l.cluster.Namespace).Get(ctx, records.LockName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		l.seen, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("read the lock of cluster %q: %w", l.cluster.Context, err)
	}
	return nil
}

// write makes a run the holder, "" none, provided that the Lease is as it was last seen. Else the error is errWritten.
func (l *lock) write(ctx context.Context, holder string) error {
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: records.LockName, Namespace: l.cluster.Namespace, Labels: map[string]string{records.LabelComponent: records.ComponentLock},
	}}
	put := func() (*coordinationv1.Lease, error) {
		return l.cluster.Kube.CoordinationV1().Leases(l.cluster.Namespace).Create(ctx, lease, metav1.CreateOptions{FieldManager: FieldManager})
	}
	if l.seen != nil {
		lease = l.seen.DeepCopy()
		put = func() (*coordinationv1.Lease, error) {
			return l.cluster.Kube.CoordinationV1().Leases(l.cluster.Namespace).Update(ctx, lease, metav1.UpdateOptions{FieldManager: FieldManager})
		}
	}
	if holderOf(lease) != holder {
		lease.Spec.AcquireTime = &now
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &holder, &now
	lease.Spec.LeaseDurationSeconds = new(int32((l.options.Duration + time.Second - 1) / time.Second))
	after, err := put()
	switch {
	case err == nil:
		l.seen = after
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), l.seen != nil && apierrors.IsNotFound(err),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errWritten
	}
	err = fmt.Errorf("lock cluster %q: %w", l.cluster.Context, err)
	if l.seen == nil && apierrors.IsForbidden(err) {
		return hint.With(err, "an administrator makes the missing Lease: liqoctl network init --update")
	}
	return err
}

// take takes the lock as it was seen, if no run held it.
func (l *lock) take(ctx context.Context) error {
	switch {
	case l.unread != nil:
		return l.unread
	case holderOf(l.seen) != "":
		return errWritten
	}
	// Whether it was taken must be known, also where the user interrupts that.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
	defer cancel()
	return l.write(ctx, l.holder)
}

// try takes the lock if it is free. An API server that does not answer soon is no better than a lock that is held.
func (l *lock) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := l.look(ctx); err != nil {
		return err
	}
	switch holderOf(l.seen) {
	case l.holder: // the answer was lost
		return nil
	case "":
		return l.write(ctx, l.holder)
	}
	return errWritten
}

// await waits until the lock is free, or its holder does not renew it any more, and takes it. It returns without the
// lock where the namespace is gone by then.
func (l *lock) await(ctx context.Context, note func(string)) error {
	if err := l.mayBreak(ctx); err != nil {
		return err
	}
	var told string       // the holder that the user knows of
	var changed time.Time // when the version was seen first
	for {
		before := versionOf(l.seen)
		err := l.look(ctx)
		if changed.IsZero() || versionOf(l.seen) != before {
			changed = time.Now()
		}
		done := err == nil && holderOf(l.seen) == l.holder // the answer was lost
		if err == nil && !done && l.free(changed) {
			err = l.write(ctx, l.holder)
			done = err == nil || apierrors.IsNotFound(err)
		}
		switch {
		case done:
			return nil
		case ctx.Err() == nil && lasting(err):
			return err
		}
		told = l.tell(told, note)
		select {
		case <-ctx.Done():
			return l.stillHeld(context.Cause(ctx))
		case <-time.After(wait.Jitter(lockRetry, 2)):
		}
	}
}

// mayBreak returns an error if the lock of another run is to be taken without the right to: who may create the Lease
// may replace its holder.
func (l *lock) mayBreak(ctx context.Context) error {
	if !l.options.Break {
		return nil
	}
	return l.cluster.CheckPermissions(ctx, []Permission{{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: l.cluster.Namespace}})
}

// tell names the holder, unless it is the one that was told last, and returns it.
func (l *lock) tell(last string, note func(string)) string {
	holder := holderOf(l.seen)
	if holder != "" && holder != last {
		note(fmt.Sprintf("cluster %q is locked by %s, since %s: waiting", l.cluster.Context, nameOf(l.seen), since(l.seen)))
	}
	return holder
}

// lasting reports whether an error stays if the same is tried again.
func lasting(err error) bool { return err != nil && !errors.Is(err, errWritten) && !Lost(err) }

// stillHeld is the error of a wait that has ended by that cause.
func (l *lock) stillHeld(cause error) error {
	if holderOf(l.seen) == "" {
		return cause
	}
	return hint.With(fmt.Errorf("cluster %q is %w by %s, since %s: %w", l.cluster.Context, ErrLocked, nameOf(l.seen), since(l.seen), cause),
		"wait longer with --lock-timeout; an administrator takes the lock of a run that does not end with --break-lock")
}

// free reports whether the lock, which has not changed since then, may be taken. Its holder renews it by its own
// duration.
func (l *lock) free(changed time.Time) bool {
	if holderOf(l.seen) == "" || l.options.Break {
		return true
	}
	return time.Since(changed) >= cmp.Or(time.Duration(value(l.seen.Spec.LeaseDurationSeconds))*time.Second, l.options.Duration)
}

// lockRetry is the shortest pause of a run that waits; the longest is three times as long. Runs that wait must not ask
// at once.
const lockRetry = 500 * time.Millisecond

// since is when the holder took a lock.
func since(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.AcquireTime == nil {
		return "an unknown time"
	}
	return lease.Spec.AcquireTime.Format(time.TimeOnly)
}

// keep renews the lock until ctx ends, and returns why that is no longer possible: another run can take it after the
// duration.
func (l *lock) keep(ctx context.Context) error {
	every, last := l.options.Duration*2/15, l.options.Duration*2/3
	for renewed := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		asked := time.Now()
		bounded, cancel := context.WithDeadlineCause(ctx, renewed.Add(last), errNotRenewed)
		err := l.rewrite(bounded, l.holder)
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is released
		case errors.Is(err, errTaken):
			return fmt.Errorf("%w %s", err, cmp.Or(nameOf(l.seen), "nobody, and is free"))
		case err == nil:
			renewed = asked
		case time.Since(renewed) >= last:
			return fmt.Errorf("it was not renewed for %s: %w", last, err)
		}
	}
}

var (
	errNotRenewed = errors.New("no answer in time")
	errTaken      = errors.New("it was taken by")
)

// rewrite is write by the holder. Other fields of the Lease may have changed since it was seen: an Apply of this run
// sets labels.
func (l *lock) rewrite(ctx context.Context, holder string) error {
	err := l.write(ctx, holder)
	if !errors.Is(err, errWritten) {
		return err
	}
	if err := l.look(ctx); err != nil {
		return err
	}
	if holderOf(l.seen) != l.holder {
		return errTaken
	}
	return l.write(ctx, holder)
}

// giveBack lets a lock go, if it is held. One that cannot be written is taken over after its duration.
func (l *lock) giveBack(ctx context.Context) {
	if !l.held {
		return
	}
	l.stop()
	_ = l.rewrite(ctx, "")
	l.held = false
}

// ErrLockLost ends a run that no longer holds the lock of a cluster. It writes nothing more and rolls nothing back:
// another run may write by now.
var ErrLockLost = errors.New("the lock is lost, what this run made stays")

// lost is the error of a run whose lock of a cluster was lost that way.
func (l *lock) lost(err error) error {
	return hint.With(fmt.Errorf("cluster %q: %w: %w", l.cluster.Context, ErrLockLost, err),
		"run this again to complete it, or remove what is there: liqoctl network disconnect, then liqoctl network reset")
}

// ErrLocked ends a run that has waited for another one.
var ErrLocked = errors.New("locked")
