package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// maxDatagram is the largest UDP payload that IPv4 carries: 65535 - IP 20 - UDP 8.
const maxDatagram = 65507

// serve answers on three ports: a page by HTTP, and echoes by TCP and UDP. The page and the first line of an
// echo contain the name of the pod and the source address of the request.
func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	on := flags.String("on", "", "`ADDRESS` to answer at (default: all of the machine; by UDP one of them answers)")
	page := flags.Int("http", 8080, "TCP port of the page")
	echoes := flags.Int("echo", 7, "TCP and UDP port of the echoes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var listen net.ListenConfig
	tcp, err := listen.Listen(ctx, "tcp", portAddress(*on, *echoes))
	if err != nil {
		return err
	}
	udp, err := listen.ListenPacket(ctx, "udp", portAddress(*on, *echoes))
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: portAddress(*on, *page),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, identity(r.RemoteAddr)) // the client notices a short answer
		}),
		ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 3)
	go func() { failed <- serveTCP(tcp) }()
	go func() { failed <- serveUDP(udp) }()
	go func() { failed <- server.ListenAndServe() }()
	fmt.Fprintf(os.Stdout, "page on %d, echoes on %d\n", *page, *echoes)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func portAddress(on string, port int) string { return net.JoinHostPort(on, strconv.Itoa(port)) }

// identity is the name of the pod, from the environment that its manifest sets, and the source of the request.
func identity(from string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("pod=%s node=%s ip=%s from=%s\n", host, os.Getenv("NODE_NAME"), podIP(os.Getenv("POD_IP")), from)
}

// serveTCP sends its identity, then returns everything that it receives.
func serveTCP(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if _, err := io.WriteString(conn, identity(conn.RemoteAddr().String())); err == nil {
				_, _ = io.Copy(conn, conn) // the client notices a short answer
			}
		}()
	}
}

// serveUDP answers a datagram with one of the same length: its identity, padded with the request. If the request is
// shorter, the answer is the whole identity.
func serveUDP(conn net.PacketConn) error {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			return err
		}
		answer := []byte(identity(from.String()))
		if len(answer) < n {
			answer = append(answer, buf[len(answer):n]...)
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			fmt.Fprintf(os.Stderr, "answer %s: %v\n", from, err)
		}
	}
}

// podIP returns the IPv4 address among those of a pod, or the first one.
func podIP(all string) string {
	addresses := strings.Split(all, ",")
	for _, a := range addresses {
		if strings.Contains(a, ".") {
			return a
		}
	}
	return addresses[0]
}
