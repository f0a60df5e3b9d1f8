package path

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"liqonet.io/liqonet/bench/load"
)

// quotaPeriod is that of the kernel's processor quotas (cpu.cfs_period_us).
const quotaPeriod = 100 * time.Millisecond

// Throttle lets the server's gateway run for a share of the time only until the context ends, as a processor quota does: a
// process that has used it up stands still until the next period.
func (b *Bed) Throttle(ctx context.Context, share float64) error {
	pid := b.joined[0].process
	run := time.Duration(share * float64(quotaPeriod))
	for ctx.Err() == nil {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			return err
		}
		_ = load.Wait(ctx, quotaPeriod-run)
		if err := unix.Kill(pid, unix.SIGCONT); err != nil {
			return err
		}
		_ = load.Wait(ctx, run)
	}
	return nil
}

// Peak is the most physical memory that a gateway took since the bed was made, bytes.
func (b *Bed) Peak() (int, error) {
	most := 0
	var errs []error
	for _, c := range b.joined {
		peak, err := load.Peak(c.process)
		most, errs = max(most, peak), append(errs, err)
	}
	return most, errors.Join(errs...)
}
