package load

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime is what this process and those that carry the way's packets have taken of all processors. What the
// kernel does for packets counts where it happens in the course of a system call, as it does between virtual links;
// its own threads do not count.
func (w Way) processorTime() (time.Duration, error) {
	return ProcessorTime(append([]int{os.Getpid()}, w.Processes...)...)
}

// ProcessorTime is what some processes have taken of all processors.
func ProcessorTime(pids ...int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
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

// Resident is the physical memory of a process, bytes.
func Resident(pid int) (int, error) { return memory(pid, "VmRSS") }

// Peak is the most physical memory that a process has had, bytes.
func Peak(pid int) (int, error) { return memory(pid, "VmHWM") }

// memory reads a field of proc_pid_status(5).
func memory(pid int, field string) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kiB int
		if n, _ := fmt.Sscanf(line, field+": %d kB", &kiB); n == 1 {
			return kiB << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d has no memory of its own", pid)
}
