package load

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what this process and those that carry the way's packets have taken of all processors. What the
// kernel does for packets counts where it happens in the course of a system call, as it does between virtual links;
// its own threads do not count.
func (w Way) processorTime() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range append([]int{os.Getpid()}, w.Processes...) {
		var t unix.Timespec
		if err := unix.ClockGettime(processClock(pid), &t); err != nil {
			return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// processClock is the clock of all threads of a process, as clock_getcpuclockid(3) makes it.
func processClock(pid int) int32 {
	const scheduled = 2 // CPUCLOCK_SCHED of linux/posix-timers.h: nanoseconds, not ticks
	return int32(^pid<<3 | scheduled)
}
