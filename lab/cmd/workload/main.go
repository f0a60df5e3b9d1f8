// Command workload is the program of a lab's test pods. Without arguments it waits for a signal: it is also the pause
// program of pod sandboxes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// verbs by their name. Each receives the arguments after it.
var verbs = map[string]func(ctx context.Context, args []string) error{
	"serve": serve,
	"get":   get,
	"tcp":   func(ctx context.Context, args []string) error { return echo(ctx, "tcp", args) },
	"udp":   func(ctx context.Context, args []string) error { return echo(ctx, "udp", args) },
	"ping":  ping,
	"send":  send,
	"probe": probe,
}

const usage = `usage: workload                                        wait to be ended
       workload serve [-http PORT] [-echo PORT]        page and echoes with the source address of the request
       workload get [-timeout D] URL                   print a page
       workload tcp|udp [-timeout D] [-size N] [-df] HOST:PORT   print an echo's answer
       workload ping [-timeout D] [-size N] [-df] [-count N] HOST
       workload each 'VERB ...' ...                    run several of these, each to its end
       workload send [-every D] [-rounds N] TEXT HOST:PORT...   send datagrams full of a text, again and again
       workload probe [-at ADDRESS:PORT]               measure paths to other pods when asked by HTTP`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		<-ctx.Done()
		return
	}
	err := run(ctx, os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("no such verb")

// run runs a verb with its arguments. Those of each are verbs with theirs: all run, also after one has failed.
func run(ctx context.Context, args []string) error {
	if verb, ok := verbs[args[0]]; ok {
		return verb(ctx, args[1:])
	}
	if args[0] != "each" {
		return errUsage
	}
	var failed []error
	for _, command := range args[1:] {
		if err := run(ctx, strings.Fields(command)); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", command, err))
		}
	}
	return errors.Join(failed...)
}
