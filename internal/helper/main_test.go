//go:build linux

package helper

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"

	"liqonet.io/liqonet/internal/testbed/apiserver"
	"liqonet.io/liqonet/internal/testbed/process"
)

// job describes a helper that runs in a process.
type job struct {
	Socket  string   // of its API server
	Node    *Node    // without Env
	Gateway *Gateway // as Node
}

func TestMain(m *testing.M) {
	process.Main(runJob)
	os.Exit(m.Run())
}

func runJob(ctx context.Context, j job) error {
	client, err := kubernetes.NewForConfig(apiserver.ClientConfig(j.Socket))
	if err != nil {
		return err
	}
	ctx = process.WithParent(ctx)
	env := Env{Client: client, Namespace: testNamespace, HealthAddress: process.HealthAddress, Log: NewLog(os.Stderr, slog.LevelInfo)}
	if j.Node != nil {
		j.Node.Env = env
		return j.Node.Run(ctx)
	}
	j.Gateway.Env = env
	return j.Gateway.Run(ctx)
}
