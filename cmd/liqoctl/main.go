// Command liqoctl connects the networks of Kubernetes clusters. This file handles the process: streams, signals and the
// exit code. The commands are in package commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"

	"liqonet.io/liqonet/commands"
	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/buildinfo"
)

func main() {
	env := &cli.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: term.IsTerminal(int(os.Stdin.Fd())), OutTerminal: term.IsTerminal(int(os.Stdout.Fd())), ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Environ: os.Environ(),
		Build:   buildinfo.Read(),
	}
	env.Columns, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 if it is no terminal
	if strings.HasPrefix(filepath.Base(os.Args[0]), "kubectl-liqonet") {
		env.Program = "kubectl liqonet"
	}
	os.Exit(commands.Run(interruptible(), env, os.Args[1:]))
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels, so that a command can clean up. The second
// one ends the process immediately.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(cli.ExitInterrupted)
	}()
	return ctx
}
