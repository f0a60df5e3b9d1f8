// Command lab starts and ends Kubernetes clusters in network namespaces of this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// exitInterrupted is the exit code after an interrupt, as shells have it.
const exitInterrupted = 130

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	interrupted := ctx.Err() != nil
	stop()
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		if interrupted {
			os.Exit(exitInterrupted)
		}
		os.Exit(1)
	}
}

// exitCode is the error of a command whose program ended with this code and has printed the reason.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }
