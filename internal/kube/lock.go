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
	"k8s.io/utils/ptr"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/records"
)

// LockOptions configures the lock of a cluster. Zero values are the defaults.
type LockOptions struct {
	Holder   string        // description of this run for other runs, such as "alice@host: network connect"
	Timeout  time.Duration // limit of the wait for other runs; 0: DefaultLockTimeout
	Duration time.Duration // after this time without a change a lock is taken over; 0: DefaultLockDuration
	Break    bool          // take the lock of another run at once
}

// Defaults of LockOptions.
const (
	DefaultLockTimeout  = 10 * time.Minute
	DefaultLockDuration = 15 * time.Second
)

// lock is a Lease in liqonet's namespace: only its holder writes to the cluster. client-go's leader election cannot be
// used: it reads the Lease itself, and so cannot take it on condition that no run has written since facts were read.
type lock struct {
	cluster *Cluster // without the lock
	options LockOptions
	id      string // of the cluster; "": the run has a single cluster
	holder  string // this run

	read   bool                  // seen is set
	seen   *coordinationv1.Lease // as read before the facts, or last; nil: it does not exist
	unread error                 // why seen could not be read
	absent bool                  // it did not exist when it was read before facts
	held   bool
	stop   func() // stops renewing; set while the lock is held
	gone   bool   // released, because this run removes the Lease
}

// holderOf returns the run that holds a lock; "": none.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// nameOf returns the holder of a lock for messages. It is truncated, because others can write any length.
func nameOf(lease *coordinationv1.Lease) string { return fmt.Sprintf("%.200s", holderOf(lease)) }

// versionOf returns the resource version of a Lease; "": it does not exist.
func versionOf(lease *coordinationv1.Lease) string {
	if lease == nil {
		return ""
	}
	return lease.ResourceVersion
}

// errWritten reports that another run has written since this one read its facts, or may still write.
var errWritten = errors.New("another run has written to the cluster")

// errTerminating is errWritten because liqonet's namespace is being deleted.
var errTerminating = fmt.Errorf("%w: its namespace is being deleted", errWritten)

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

// write sets the holder, "" for none, if the Lease has not changed since it was read. Otherwise the error is
// errWritten.
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
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errTerminating
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), l.seen != nil && apierrors.IsNotFound(err):
		return errWritten
	}
	err = fmt.Errorf("lock cluster %q: %w", l.cluster.Context, err)
	if l.seen == nil && apierrors.IsForbidden(err) {
		return hint.With(err, "an administrator makes the missing Lease: liqoctl network init --update")
	}
	return err
}

// take takes the lock if no run held it when it was read.
func (l *lock) take(ctx context.Context) error {
	switch {
	case l.unread != nil:
		return l.unread
	case holderOf(l.seen) != "":
		return errWritten
	}
	// The result must be known, even if the user interrupts the request.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
	defer cancel()
	return l.write(ctx, l.holder)
}

// try takes the lock if it is free. An API server that does not answer soon counts as a held lock.
func (l *lock) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := l.look(ctx); err != nil {
		return err
	}
	switch holderOf(l.seen) {
	case l.holder: // the response was lost
		return nil
	case "":
		return l.write(ctx, l.holder)
	}
	return errWritten
}

// await waits until the lock is free, or no longer renewed, and takes it. It returns without the lock if the namespace
// was deleted.
func (l *lock) await(ctx context.Context, note func(string)) error {
	if err := l.mayBreak(ctx); err != nil {
		return err
	}
	var reported string   // the last reported reason
	var changed time.Time // when the present version was first read
	for {
		before := versionOf(l.seen)
		err := l.look(ctx)
		if changed.IsZero() || versionOf(l.seen) != before {
			changed = time.Now()
		}
		done := err == nil && holderOf(l.seen) == l.holder // the response was lost
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
		reported = l.report(reported, err, note)
		select {
		case <-ctx.Done():
			return l.stillHeld(context.Cause(ctx))
		case <-time.After(wait.Jitter(lockRetry, 2)):
		}
	}
}

// mayBreak returns an error if the user wants to take the lock of another run without the right to create the Lease.
func (l *lock) mayBreak(ctx context.Context) error {
	if !l.options.Break {
		return nil
	}
	return l.cluster.CheckPermissions(ctx, []Permission{{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: l.cluster.Namespace}})
}

// report prints the reason of a wait, after a failed attempt to take the lock, if it differs from the last reported
// one, and returns it.
func (l *lock) report(last string, err error, note func(string)) string {
	reason := ""
	switch {
	case holderOf(l.seen) != "":
		reason = fmt.Sprintf("cluster %q is locked by %s, since %s: waiting", l.cluster.Context, nameOf(l.seen), since(l.seen))
	case errors.Is(err, errTerminating):
		reason = fmt.Sprintf("cluster %q: namespace %s is being deleted: waiting", l.cluster.Context, l.cluster.Namespace)
	}
	if reason != "" && reason != last {
		note(reason)
	}
	return reason
}

// lasting reports whether an error is permanent.
func lasting(err error) bool { return err != nil && !errors.Is(err, errWritten) && !Lost(err) }

// stillHeld returns the error of a wait that ended with a cause.
func (l *lock) stillHeld(cause error) error {
	if holderOf(l.seen) == "" {
		return cause
	}
	return hint.With(fmt.Errorf("cluster %q is %w by %s, since %s: %w", l.cluster.Context, ErrLocked, nameOf(l.seen), since(l.seen), cause),
		"wait longer with --lock-timeout; an administrator takes the lock of a run that does not end with --break-lock")
}

// free reports whether the lock, unchanged since a time, may be taken. Its own duration decides.
func (l *lock) free(changed time.Time) bool {
	if holderOf(l.seen) == "" || l.options.Break {
		return true
	}
	return time.Since(changed) >= cmp.Or(time.Duration(ptr.Deref(l.seen.Spec.LeaseDurationSeconds, 0))*time.Second, l.options.Duration)
}

// lockRetry is the shortest pause of a waiting run; the longest is three times as long, so that waiting runs do not
// retry at the same time.
const lockRetry = 500 * time.Millisecond

// since returns the time at which the holder took a lock.
func since(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.AcquireTime == nil {
		return "an unknown time"
	}
	return lease.Spec.AcquireTime.Format(time.TimeOnly)
}

// keep renews the lock until ctx ends. It returns an error if that is no longer possible: another run can take the lock
// after its duration.
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
			return nil //nolint:nilerr // released
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

// rewrite is write by the holder. Other fields of the Lease may have changed since it was read: an Apply of this run
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

// giveBack releases the lock if it is held. If that fails, another run takes it over after its duration.
func (l *lock) giveBack(ctx context.Context) {
	if !l.held {
		return
	}
	l.stop()
	_ = l.rewrite(ctx, "")
	l.held = false
}

// ErrLockLost ends a run that no longer holds the lock of a cluster. The run writes nothing more and does not roll
// back, because another run may write.
var ErrLockLost = errors.New("the lock is lost, what this run made stays")

// lost returns the error of a run that lost the lock of a cluster because of err.
func (l *lock) lost(err error) error {
	return hint.With(fmt.Errorf("cluster %q: %w: %w", l.cluster.Context, ErrLockLost, err),
		"run this again to complete it, or remove what is there: liqoctl network disconnect, then liqoctl network reset")
}

// ErrLocked ends a run that has waited too long for another run.
var ErrLocked = errors.New("locked")
