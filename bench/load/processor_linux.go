package load

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the CPU time of this process and of the processes that carry the packets. Work of the kernel
// counts if it happens during a system call, as it does between virtual links. Kernel threads do not count.
func (w Way) processorTime() (time.Duration, error) {
	return ProcessorTime(append([]int{os.Getpid()}, w.Processes...)...)
}

// ProcessorTime returns the CPU time of processes.
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

// processClock returns the clock of all threads of a process, like clock_getcpuclockid(3).
func processClock(pid int) int32 {
	const scheduled = 2 // CPUCLOCK_SCHED of linux/posix-timers.h: nanoseconds, not ticks
	return int32(^pid<<3 | scheduled)
}

// Resident returns the resident memory of a process, in bytes.
func Resident(pid int) (int, error) { return memory(pid, "VmRSS") }

// Peak returns the peak resident memory of a process, in bytes.
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
