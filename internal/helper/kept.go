//go:build linux

package helper

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// What a helper last read from the API server is kept in a volume of its pod. A helper that starts while the API server is
// away goes on with it: a gateway with WireGuard in userspace has no tunnel otherwise, and a node repairs nothing.
const (
	// keepEvery is the least time between two writes, of what changed in between; more if writes take more of a core than keepShare.
	keepEvery = time.Second
	keepShare = 100 // one part of so many
	// keepAtMost bounds the file, in bytes: a pod whose volume is too large is evicted. That of a gateway of 1,000 nodes has 3 MB.
	keepAtMost = 32 << 20
	// listPatience is how long a start waits for the API server where there is something to go on with.
	listPatience = time.Second
	keptName     = "objects"
	keptNew      = "objects.new" // until it is whole
)

// kept is what is kept of a mirror's objects. The zero value keeps nothing.
type kept struct {
	folder string // "": none
	stores []keptStore
	dirty  atomic.Bool // something changed since it was written
}

type keptStore struct {
	cache.Store
	kind reflect.Type // of its objects
}

// keptObject is a line of the file. The last line has no object: a file without it lost its end when the node lost power.
type keptObject struct {
	Store  int             `json:"store"` // its number: the pod, and with it the volume, goes with the program that wrote it
	Kind   string          `json:"kind,omitempty"`
	Name   string          `json:"name,omitempty"`
	Object json.RawMessage `json:"object,omitempty"`
}

func (k *kept) add(s cache.Store, example apiruntime.Object) {
	k.stores = append(k.stores, keptStore{s, reflect.TypeOf(example).Elem()})
}

// load fills the stores. It reports whether there was something; what cannot be read whole is nothing. An informer that lists
// later replaces it.
func (k *kept) load() (bool, error) {
	objects, err := k.read(func(keptObject) bool { return true })
	for i := range objects {
		err = errors.Join(err, k.stores[i].Replace(objects[i], ""))
	}
	return objects != nil && err == nil, err
}

// read returns the wanted objects of each store; nil if there is no file. Others are not decoded.
func (k *kept) read(wanted func(keptObject) bool) ([][]any, error) {
	if k.folder == "" {
		return nil, nil
	}
	f, err := os.Open(filepath.Join(k.folder, keptName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	objects, err := k.decode(f, wanted)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return objects, nil
}

// decode reads the wanted objects of each store.
func (k *kept) decode(r io.Reader, wanted func(keptObject) bool) ([][]any, error) {
	objects := make([][]any, len(k.stores))
	lines := json.NewDecoder(bufio.NewReader(r))
	for {
		var line keptObject
		if err := lines.Decode(&line); err != nil {
			return nil, err
		}
		if line.Object == nil {
			return objects, nil
		}
		if !wanted(line) {
			continue
		}
		if err := line.into(k.stores, objects); err != nil {
			return nil, err
		}
	}
}

// into adds the object of a line to those of its store.
func (o keptObject) into(stores []keptStore, objects [][]any) error {
	if o.Store < 0 || o.Store >= len(stores) || o.Kind != stores[o.Store].kind.Name() {
		return fmt.Errorf("object of kind %q in store %d: this program has other ones", o.Kind, o.Store)
	}
	object := reflect.New(stores[o.Store].kind).Interface()
	if err := json.Unmarshal(o.Object, object); err != nil {
		return err
	}
	objects[o.Store] = append(objects[o.Store], object)
	return nil
}

// save writes all objects into a new file, which then takes the place of the old one.
func (k *kept) save() (err error) {
	f, err := k.create()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriter(f)
	err = errors.Join(k.encode(out), out.Flush(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(k.folder, keptName))
}

// create makes the new file. It always has the same name: a process that is killed here leaves one, not one more.
func (k *kept) create() (*os.File, error) {
	return os.OpenFile(filepath.Join(k.folder, keptNew), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func (k *kept) encode(w io.Writer) error {
	lines := json.NewEncoder(&capped{w, keepAtMost})
	for i, s := range k.stores {
		for _, object := range s.List() {
			data, err := json.Marshal(object)
			if err == nil {
				err = lines.Encode(keptObject{i, s.kind.Name(), object.(metav1.Object).GetName(), data})
			}
			if err != nil {
				return err
			}
		}
	}
	return lines.Encode(keptObject{})
}

// capped writes so many bytes more, and then nothing.
type capped struct {
	io.Writer
	left int
}

func (l *capped) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, fmt.Errorf("objects have more than %d bytes", keepAtMost)
	}
	return l.Writer.Write(b)
}

// run saves changes until ctx ends. That it cannot is told once: nothing depends on it as long as the API server answers.
func (k *kept) run(ctx context.Context, log *slog.Logger) {
	if _, err := os.Stat(k.folder); k.folder == "" || errors.Is(err, fs.ErrNotExist) {
		return // a pod of an earlier release has no such volume
	}
	told := false
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		var took time.Duration
		if k.dirty.Swap(false) {
			var err error
			took, err = processorTime(k.save)
			if err != nil {
				k.dirty.Store(true) // what changed is still not in the file
				if !told {
					log.Warn("what the API server said is not kept; a restart needs the API server", "error", err)
				}
				told = true
			}
		}
		next.Reset(max(keepEvery, keepShare*took))
	}
}

// processorTime is how long f has the processor. Waiting for a slow disk is no reason to write less often: a process that starts
// from a file older than the kernel's state takes this state back.
func processorTime(f func() error) (time.Duration, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	err := f()
	return threadTime() - begin, err
}

// threadTime is how long this thread has had the processor.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err) // the clock is the kernel's since 2.6.12
	}
	return time.Duration(t.Nano())
}
