// Package apiserver serves the objects of client-go's fake client to processes, like an API server.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// Serve serves the objects of a fake client to other processes until ctx ends, on a Unix socket, which is reachable
// from every network namespace. It supports the verbs that helpers use: get, list, watch, create and patch. An object
// that no longer matches a watch's selector is not reported as deleted.
func Serve(ctx context.Context, api *fake.Clientset, socket string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	s := &server{api: api, deletions: make(map[schema.GroupVersionResource][]runtime.Object)}
	api.PrependReactor("delete", "*", s.recordDeletion)
	web := &http.Server{ //nolint:gosec // only tests connect
		Handler: s, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Start is Serve until stop is called. After stop has returned, the socket can be used again.
func Start(api *fake.Clientset, socket string) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, api, socket) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-done
	})
}

// ClientConfig returns the client configuration for the socket of Serve.
func ClientConfig(socket string) *rest.Config {
	return &rest.Config{
		Host:          "http://fake",
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
}

type server struct {
	api *fake.Clientset
	// version is the resource version of the object sent last. The fake's objects have none, and clients treat objects
	// with equal versions as unchanged.
	version   atomic.Uint64
	mu        sync.Mutex
	deletions map[schema.GroupVersionResource][]runtime.Object // deleted objects, in order
}

// recordDeletion stores an object that is about to be deleted.
func (s *server) recordDeletion(a clienttesting.Action) (bool, runtime.Object, error) {
	obj, err := s.api.Tracker().Get(a.GetResource(), a.GetNamespace(), a.(clienttesting.DeleteAction).GetName())
	if err != nil {
		return false, nil, nil // the deletion itself returns the error
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deletions[a.GetResource()] = append(s.deletions[a.GetResource()], obj)
	return false, nil, nil
}

// deleted returns the deleted objects of a kind.
func (s *server) deleted(of schema.GroupVersionResource) []runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.deletions[of])
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, err := parseTarget(r.URL.Path)
	if err != nil {
		writeError(w, err)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, t)
		return
	}
	obj, err := s.do(r, t)
	if err != nil {
		writeError(w, err)
		return
	}
	text, err := s.encode(obj, t)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_, _ = w.Write(text) //nolint:gosec // JSON, not read by a browser
}

func (s *server) do(r *http.Request, t target) (runtime.Object, error) {
	empty, err := scheme.Scheme.New(t.kind)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Method == http.MethodGet && t.name != "":
		return s.api.Invokes(clienttesting.NewGetAction(t.resource, t.namespace, t.name), empty)
	case r.Method == http.MethodGet:
		return s.list(r, t)
	case r.Method == http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, &t.kind, nil)
		if err != nil {
			return nil, err
		}
		return s.api.Invokes(clienttesting.NewCreateAction(t.resource, t.namespace, obj), empty)
	case r.Method == http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		kind := types.PatchType(r.Header.Get("Content-Type"))
		return s.api.Invokes(clienttesting.NewPatchAction(t.resource, t.namespace, t.name, kind, body), empty)
	}
	return nil, apierrors.NewMethodNotSupported(t.resource.GroupResource(), r.Method)
}

func (s *server) list(r *http.Request, t target) (runtime.Object, error) {
	matches, err := selection(r)
	if err != nil {
		return nil, err
	}
	empty, err := scheme.Scheme.New(t.kind.GroupVersion().WithKind(t.kind.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list, err := s.api.Invokes(clienttesting.NewListActionWithOptions(t.resource, t.kind, t.namespace, metav1.ListOptions{}), empty)
	if err != nil {
		return nil, err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var some []runtime.Object
	for _, obj := range all {
		if matches(obj) {
			some = append(some, obj)
		}
	}
	return list, meta.SetList(list, some)
}

// watch sends every object that was ever deleted, every existing one, and then changes. This includes all changes
// between a client's list and its watch; clients skip the known ones.
func (s *server) watch(w http.ResponseWriter, r *http.Request, t target) {
	matches, err := selection(r)
	if err != nil {
		writeError(w, err)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		writeError(w, apierrors.NewInvalid(t.kind.GroupKind(), "", nil)) // clients then list and watch again
		return
	}
	// Without a version, the fake begins with the existing objects.
	events, err := s.api.InvokesWatch(clienttesting.NewWatchActionWithOptions(t.resource, t.namespace, metav1.ListOptions{}))
	if err != nil {
		writeError(w, err)
		return
	}
	defer events.Stop()
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	flush := http.NewResponseController(w).Flush
	send := func(kind watch.EventType, obj runtime.Object) error {
		if !matches(obj) {
			return nil
		}
		text, err := s.encode(obj, t)
		if err == nil {
			_, err = fmt.Fprintf(w, "{\"type\":%q,\"object\":%s}\n", kind, text)
		}
		return err
	}
	for _, obj := range s.deleted(t.resource) {
		if err := send(watch.Deleted, obj); err != nil {
			return
		}
	}
	for {
		if err := flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case e, ok := <-events.ResultChan():
			if !ok {
				return
			}
			if err := send(e.Type, e.Object); err != nil {
				return
			}
		}
	}
}

// encode encodes an object with its kind and a new resource version.
func (s *server) encode(obj runtime.Object, t target) ([]byte, error) {
	obj = obj.DeepCopyObject()
	m, err := meta.CommonAccessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(strconv.FormatUint(s.version.Add(1), 10))
	return runtime.Encode(scheme.Codecs.LegacyCodec(t.kind.GroupVersion()), obj)
}

// target is the resource that a request addresses.
type target struct {
	resource        schema.GroupVersionResource
	kind            schema.GroupVersionKind
	namespace, name string // "": none
}

// parseTarget parses the path of a request, such as /apis/apps/v1/namespaces/NAMESPACE/deployments/NAME.
func parseTarget(path string) (target, error) {
	var t target
	words := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(words) > 2 && words[0] == "api":
		t.resource.Version, words = words[1], words[2:]
	case len(words) > 3 && words[0] == "apis":
		t.resource.Group, t.resource.Version, words = words[1], words[2], words[3:]
	default:
		return t, apierrors.NewNotFound(schema.GroupResource{}, path)
	}
	if len(words) > 2 && words[0] == "namespaces" {
		t.namespace, words = words[1], words[2:]
	}
	t.resource.Resource = words[0]
	if len(words) > 1 {
		t.name = words[1]
	}
	for kind := range scheme.Scheme.KnownTypes(t.resource.GroupVersion()) {
		t.kind = t.resource.GroupVersion().WithKind(kind)
		if plural, _ := meta.UnsafeGuessKindToResource(t.kind); plural == t.resource {
			return t, nil
		}
	}
	return t, apierrors.NewNotFound(t.resource.GroupResource(), path)
}

// selection returns a function that reports whether the selectors of a request match an object.
func selection(r *http.Request) (func(runtime.Object) bool, error) {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(obj runtime.Object) bool {
		m, err := meta.Accessor(obj)
		if err != nil {
			return false
		}
		known := fields.Set{"metadata.name": m.GetName(), "metadata.namespace": m.GetNamespace()}
		if pod, ok := obj.(*corev1.Pod); ok {
			known["spec.nodeName"] = pod.Spec.NodeName
		}
		return byLabel.Matches(labels.Set(m.GetLabels())) && byField.Matches(known)
	}, nil
}

func writeError(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	s := status.Status()
	text, err := runtime.Encode(scheme.Codecs.LegacyCodec(schema.GroupVersion{Version: "v1"}), &s)
	if err != nil {
		text = nil
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(int(s.Code))
	_, _ = w.Write(text) //nolint:gosec // JSON, not read by a browser
}
