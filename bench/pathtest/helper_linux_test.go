package pathtest

import (
	"context"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/inspect/trace/probe"
	"liqonet.io/liqonet/internal/testbed/clusters"
	"liqonet.io/liqonet/internal/testbed/process"
)

// job is what the test binary does when it runs as a process.
type job struct {
	clusters.Helper

	Question *probe.Question // of network trace, instead of a helper's work

	Spoiled string // kind of objects that crash a process which decodes them; "": none
	Never   bool   // instead, their list does not arrive
}

func TestMain(m *testing.M) {
	process.Main(runJob)
	watch.DefaultChanSize = 1000 // a watch of the fake API server begins with all objects of a kind
	os.Exit(m.Run())
}

func runJob(ctx context.Context, j job) error {
	if j.Question != nil {
		return j.Question.Run(ctx, os.Stdin, os.Stdout)
	}
	return j.Run(ctx, func(c kubernetes.Interface) kubernetes.Interface {
		if j.Spoiled == "" {
			return c
		}
		return spoiled{c, j.Spoiled, j.Never}
	})
}
