// Package apiserver offers the objects of client-go's fake client to processes, as an API server does.
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

// Serve offers the objects of a fake client to other processes until ctx ends, at a Unix socket: it is reached
// from every network namespace. It knows what helpers do: get, list, watch, create and patch. An object that
// ceases to match a watch's selector is not reported as deleted.
func Serve(ctx context.Context, kube *fake.Clientset, socket string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	s := &server{kube: kube, gone: make(map[schema.GroupVersionResource][]runtime.Object)}
	kube.PrependReactor("delete", "*", s.remember)
	web := &http.Server{ //nolint:gosec // only tests connect
		Handler: s, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = web.Close() })()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// ClientConfig is how a client reaches what Serve offers.
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
	kube *fake.Clientset
	// version is that of the object sent last. The fake's objects have none, and to clients equal ones mean that
	// nothing has changed.
	version atomic.Uint64
	mu      sync.Mutex
	gone    map[schema.GroupVersionResource][]runtime.Object // what was deleted, in order
}

// remember keeps an object that is about to be deleted.
func (s *server) remember(a clienttesting.Action) (bool, runtime.Object, error) {
	obj, err := s.kube.Tracker().Get(a.GetResource(), a.GetNamespace(), a.(clienttesting.DeleteAction).GetName())
	if err != nil {
		return false, nil, nil // the deletion itself tells
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone[a.GetResource()] = append(s.gone[a.GetResource()], obj)
	return false, nil, nil
}

// deleted returns what was deleted of a kind so far.
func (s *server) deleted(of schema.GroupVersionResource) []runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.gone[of])
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
	_, _ = w.Write(text) //nolint:gosec // JSON, read by no browser
}

func (s *server) do(r *http.Request, t target) (runtime.Object, error) {
	empty, err := scheme.Scheme.New(t.kind)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Method == http.MethodGet && t.name != "":
		return s.kube.Invokes(clienttesting.NewGetAction(t.resource, t.namespace, t.name), empty)
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
		return s.kube.Invokes(clienttesting.NewCreateAction(t.resource, t.namespace, obj), empty)
	case r.Method == http.MethodPatch:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		kind := types.PatchType(r.Header.Get("Content-Type"))
		return s.kube.Invokes(clienttesting.NewPatchAction(t.resource, t.namespace, t.name, kind, body), empty)
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
	list, err := s.kube.Invokes(clienttesting.NewListActionWithOptions(t.resource, t.kind, t.namespace, metav1.ListOptions{}), empty)
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

// watch reports every object that was ever deleted, every one that is there, and then what changes: whatever came
// between a client's list and its watch is among them, and clients pass over what they know.
func (s *server) watch(w http.ResponseWriter, r *http.Request, t target) {
	matches, err := selection(r)
	if err != nil {
		writeError(w, err)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		writeError(w, apierrors.NewInvalid(t.kind.GroupKind(), "", nil)) // clients then list and watch
		return
	}
	// Without a version the fake begins with what is there.
	events, err := s.kube.InvokesWatch(clienttesting.NewWatchActionWithOptions(t.resource, t.namespace, metav1.ListOptions{}))
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

// encode writes an object with its kind and a version of its own.
func (s *server) encode(obj runtime.Object, t target) ([]byte, error) {
	obj = obj.DeepCopyObject()
	m, err := meta.CommonAccessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(strconv.FormatUint(s.version.Add(1), 10))
	return runtime.Encode(scheme.Codecs.LegacyCodec(t.kind.GroupVersion()), obj)
}

// target is what a request is about.
type target struct {
	resource        schema.GroupVersionResource
	kind            schema.GroupVersionKind
	namespace, name string // "": none
}

// parseTarget reads the path of a request, such as /apis/apps/v1/namespaces/NAMESPACE/deployments/NAME.
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

// selection is the set of objects that a request selects.
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
	_, _ = w.Write(text) //nolint:gosec // JSON, read by no browser
}
