//go:build lab

package peering

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/health"
	"liqonet.io/liqonet/internal/records"
)

// releaseVariables name liqoctl of the release before this one, of this one, and of one after it.
var releaseVariables = map[string]string{"before": "LIQOCTL_BEFORE", "this": programVariable, "after": "LIQOCTL_AFTER"}

// TestLabReleases uses liqoctl of two neighbouring releases for one peering, in turn: up, back, up again. Reports of helpers have the
// fields that those of the newer release write. Both verify packets of all nodes and know the state, the older one keeps what it does not know,
// and either leaves nothing.
func TestLabReleases(t *testing.T) {
	stages := openStages(t)
	for _, pair := range [][2]string{{"before", "this"}, {"this", "after"}} {
		for _, last := range pair {
			t.Run(fmt.Sprintf("%s and %s, removed by %s", pair[0], pair[1], last), func(t *testing.T) {
				t.Parallel()
				whole := newAct(t, stages, strings.Join(append(pair[:], last), "-"))
				by := func(name string) act {
					a := whole
					if a.liqoctl.path = os.Getenv(releaseVariables[name]); a.liqoctl.path == "" {
						t.Fatalf("%s is not set", releaseVariables[name])
					}
					return a
				}
				older, newer, extends := by(pair[0]), by(pair[1]), pair[1] == "after"

				older.liqoctl.must(t, older.connectArgs()...)
				newer.expectHealthy(t)
				newer.update(t)
				whole.setLater(extends)
				newer.expectHealthy(t)
				older.expectHealthy(t)
				newer.connectAgain(t)
				older.update(t)
				whole.setLater(false)
				whole.expectLater(t, extends)
				newer.expectHealthy(t)
				older.expectHealthy(t)
				newer.update(t)
				by(last).remove(t)
			})
		}
	}
}

// update gives the helpers another image, as an upgrade does.
func (a act) update(t *testing.T) {
	t.Helper()
	a.liqoctl.must(t, append(a.connectArgs(), "--update", "--image", a.image())...)
}

// connectAgain changes nothing.
func (a act) connectAgain(t *testing.T) {
	t.Helper()
	if out := a.liqoctl.must(t, append(a.connectArgs(), "--image", a.image(), "-o", "json")...); !strings.Contains(out, `"changed": false`) {
		t.Errorf("connect again: %s", out)
	}
}

// image is that of a release.
func (a act) image() string { return "liqonet.invalid/any:" + filepath.Base(a.liqoctl.path) }

func (a act) expectHealthy(t *testing.T) {
	t.Helper()
	for _, s := range a.stages {
		if out := a.liqoctl.must(t, "network", "status", "--context", s.name, "--namespace", a.namespace); !strings.Contains(out, string(health.Healthy)) {
			t.Errorf("status of %s: %s", s.name, out)
		}
	}
}

// setLater has reports with fields that this release does not know, or without.
func (a act) setLater(later bool) {
	for _, p := range a.helpers {
		p.later.Store(later)
	}
}

// expectLater looks for such fields in the record that liqoctl writes.
func (a act) expectLater(t *testing.T, want bool) {
	t.Helper()
	cm, err := a.stages[0].kube.CoreV1().ConfigMaps(a.namespace).Get(t.Context(), records.PeeringName("b"), metav1.GetOptions{})
	if err != nil || strings.Contains(cm.Data[records.DataKey], "later:") != want {
		t.Errorf("record with fields of a later release: want %v\n%s%v", want, cm.Data[records.DataKey], err)
	}
}
