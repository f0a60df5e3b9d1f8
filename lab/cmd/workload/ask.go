package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// inquiry is what ask is to do.
type inquiry struct {
	timeout time.Duration
	ca      string // file
	token   string // file; "": none
	to      string // HOST:PORT
	body    string // "": a GET
	url     string
}

// ask sends a request to a server that it knows by its certificate, and prints the answer, whatever its status. A
// status other than 200 is an error.
func ask(ctx context.Context, args []string) error {
	q, err := parseInquiry(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	client, err := q.client()
	if err != nil {
		return err
	}
	req, err := q.request(ctx)
	if err != nil {
		return err
	}
	resp, err := client.Do(req) //nolint:gosec // the test chooses the URL
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(os.Stdout, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: %s", q.url, resp.Status)
	}
	return nil
}

func parseInquiry(args []string) (inquiry, error) {
	var q inquiry
	flags := flag.NewFlagSet("ask", flag.ContinueOnError)
	flags.DurationVar(&q.timeout, "timeout", patience, "for the whole exchange")
	flags.StringVar(&q.ca, "ca", "", "file of the certificates to trust")
	flags.StringVar(&q.token, "token", "", "file of a bearer token")
	flags.StringVar(&q.to, "to", "", "HOST:PORT to connect to, whatever the URL says")
	flags.StringVar(&q.body, "body", "", "JSON to send")
	if err := flags.Parse(args); err != nil {
		return q, err
	}
	if flags.NArg() != 1 || q.ca == "" || q.to == "" {
		return q, errors.New("ask: want -ca, -to and one argument, a URL")
	}
	q.url = flags.Arg(0)
	return q, nil
}

// client trusts the given certificates alone.
func (q inquiry) client() (*http.Client, error) {
	text, err := os.ReadFile(q.ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: no certificate", q.ca)
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, &net.Dialer{}, network, q.to)
		},
	}}, nil
}

func (q inquiry) request(ctx context.Context) (*http.Request, error) {
	method := http.MethodGet
	if q.body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, q.url, strings.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.token != "" {
		token, err := os.ReadFile(q.token)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	return req, nil
}
