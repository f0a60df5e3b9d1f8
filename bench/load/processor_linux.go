package load

import (
	"fmt"
	"os"
	"strings"
	"time"

	"liqonet.io/liqonet/internal/testbed/process"
)

// processorTime returns the CPU time of this process and of the processes that carry the packets. Work of the kernel
// counts if it happens during a system call, as it does between virtual links. Kernel threads do not count.
func (w Way) processorTime() (time.Duration, error) {
	return process.Time(append([]int{os.Getpid()}, w.Processes...)...)
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
