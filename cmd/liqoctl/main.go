// Command liqoctl joins the networks of Kubernetes clusters. This file has what belongs to the process: streams,
// signals and the exit code. The commands are in package commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"liqonet.io/liqonet/commands"
	"liqonet.io/liqonet/internal/buildinfo"
)

func main() {
	env := &commands.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		OutTerminal: term.IsTerminal(int(os.Stdout.Fd())), ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		LookupEnv: os.LookupEnv,
		Build:     buildinfo.Read(),
	}
	os.Exit(commands.Run(interruptible(), env, os.Args[1:]))
}

// interruptible returns a context that the first signal to end cancels, so that a command can clean up. The
// second one ends the process at once.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(commands.ExitInterrupted)
	}()
	return ctx
}
