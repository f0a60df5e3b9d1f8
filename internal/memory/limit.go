// Package memory has Go's garbage collector respect the memory limit of the container. It knows nothing of the program.
package memory

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// share is how much of the container's memory Go may have: the rest is for what the collector does not see, such as the buffers
// of sockets, and for what is allocated while it runs.
const share = 0.85

// limitFiles have the memory limit of the container in which they are read, below /: of cgroup v2 and v1.
var limitFiles = []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"}

// FollowContainer sets Go's memory limit to a share of the container's, and returns it in bytes: 0 without a limit, and where
// the variable GOMEMLIMIT has set one. Near the limit the collector runs more often, before the kernel ends the process.
func FollowContainer(root fs.FS) (int64, error) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return 0, nil
	}
	container, err := containerLimit(root)
	if err != nil || container == 0 {
		return 0, err
	}
	limit := int64(float64(container) * share)
	debug.SetMemoryLimit(limit)
	return limit, nil
}

// containerLimit is the memory limit of the container in bytes; 0: none.
func containerLimit(root fs.FS) (int64, error) {
	for _, file := range limitFiles {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue // it is of the other version
		}
		value := strings.TrimSpace(string(text))
		if value == "max" {
			return 0, nil
		}
		limit, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
			return 0, fmt.Errorf("memory limit in /%s: %w", file, err)
		case limit > unlimitedV1:
			return 0, nil
		}
		return limit, nil
	}
	return 0, nil
}

// unlimitedV1 is less than what cgroup v1 has for no limit, which is the largest multiple of the size of a page.
const unlimitedV1 = math.MaxInt64 / 2
