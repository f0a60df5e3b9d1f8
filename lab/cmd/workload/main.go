// Command workload is the program of a lab's test pods. Without arguments it waits for a signal: it is also the pause
// program of pod sandboxes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
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
       workload send [-every D] [-rounds N] TEXT HOST:PORT...   send datagrams full of a text, again and again
       workload probe [-at ADDRESS:PORT]               measure paths to other pods when asked by HTTP`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 {
		<-ctx.Done()
		return
	}
	verb, ok := verbs[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	if err := verb(ctx, os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
