package kube

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Session is a command that runs in a container of a pod. Read reads its standard output, Write writes its standard
// input.
type Session struct {
	conn io.ReadWriteCloser
	in   *bufio.Reader
	rest []byte // output that was received and not read yet
	stop func() bool

	failure string // standard error of the command
}

// Channels of the protocol v4.channel.k8s.io: the first byte of a message.
const (
	execProtocol = "v4.channel.k8s.io"
	execIn       = 0
	execOut      = 1
	execErr      = 2
	execEnd      = 3 // a Status
)

// Frames of WebSocket (RFC 6455, section 5.2).
const (
	frameBinary  = 0x82 // final
	frameClose   = 8
	frameOpcode  = 0x0f
	frameMasked  = 0x80
	frameLength  = 0x7f
	length16     = 126
	length64     = 127
	longestFrame = 1 << 20 // bytes
)

// longestFailure limits the standard error that is stored, in bytes: the output of a command in a pod is unlimited.
const longestFailure = 4096

// Exec runs a command in a pod in liqonet's namespace until the context ends. It does not use client-go's client, which
// supports more protocols but needs two more modules.
func (c *Cluster) Exec(ctx context.Context, pod string, command ...string) (_ *Session, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("run a command in pod %s/%s of cluster %q: %w", c.Namespace, pod, c.Context, err)
		}
	}()
	client, ok := c.Kube.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || client == nil {
		return nil, errors.New("no connection to an API server")
	}
	url := client.Get().Namespace(c.Namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": execProtocol,
		// The key guards against caches, which do not exist with TLS.
		"Sec-WebSocket-Key": base64.StdEncoding.EncodeToString(make([]byte, 16)),
	} {
		request.Header.Set(name, value)
	}
	// This client has no timeout: the session may outlast single requests.
	answer, err := (&http.Client{Transport: client.Client.Transport}).Do(request)
	if err != nil {
		return nil, err
	}
	conn, ok := answer.Body.(io.ReadWriteCloser)
	if answer.StatusCode != http.StatusSwitchingProtocols || !ok {
		defer answer.Body.Close()
		return nil, refusal(answer)
	}
	return &Session{conn: conn, in: bufio.NewReader(conn), stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

// refusal returns the error in an API server's response.
func refusal(answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestFrame))
	if err != nil {
		return err
	}
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("%s: %s", answer.Status, text)
}

// Close ends the session. A command that reads its input ends as well.
func (s *Session) Close() error {
	s.stop()
	return s.conn.Close()
}

// Write implements io.Writer. It writes up to 124 bytes at a time. The mask of a client's frames is arbitrary; this is
// 0.
func (s *Session) Write(text []byte) (int, error) {
	if len(text)+1 >= length16 {
		return 0, io.ErrShortWrite
	}
	if _, err := s.conn.Write(append([]byte{frameBinary, frameMasked | byte(len(text)+1), 0, 0, 0, 0, execIn}, text...)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Read implements io.Reader. If the command failed, the error has its standard error.
func (s *Session) Read(to []byte) (int, error) {
	for len(s.rest) == 0 {
		opcode, message, err := s.frame()
		switch {
		case err != nil:
			return 0, err
		case opcode == frameClose:
			return 0, io.EOF
		case len(message) == 0: // the server first sends an empty message on every channel
		case message[0] == execOut:
			s.rest = message[1:]
		case message[0] == execErr:
			s.failure += string(message[1:min(len(message), 1+longestFailure-len(s.failure))])
		case message[0] == execEnd:
			var status metav1.Status
			if err := json.Unmarshal(message[1:], &status); err != nil || status.Status == metav1.StatusSuccess {
				return 0, cmp.Or(err, io.EOF)
			}
			return 0, fmt.Errorf("%s %s", status.Message, s.failure)
		}
	}
	n := copy(to, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// frame reads one frame. Servers do not mask frames.
func (s *Session) frame() (opcode byte, message []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return 0, nil, err
	}
	length := uint64(head[1] & frameLength)
	extended := map[uint64]int{length16: 2, length64: 8}[length]
	if extended > 0 {
		var more [8]byte
		if _, err := io.ReadFull(s.in, more[8-extended:]); err != nil {
			return 0, nil, err
		}
		length = binary.BigEndian.Uint64(more[:])
	}
	if length > longestFrame || head[1]&frameMasked != 0 {
		return 0, nil, fmt.Errorf("frame of %d bytes, masked %v", length, head[1]&frameMasked != 0)
	}
	message = make([]byte, length)
	_, err = io.ReadFull(s.in, message)
	return head[0] & frameOpcode, message, err
}
