package kube_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/fakecluster"
	"liqonet.io/liqonet/internal/testbed/require"
)

// dataOf is the record of the fabric's ConfigMap; "" if there is none.
func dataOf(t *testing.T, api *fake.Clientset) string {
	t.Helper()
	live, err := api.CoreV1().ConfigMaps(records.DefaultNamespace).Get(t.Context(), records.FabricName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	return live.Data[records.DataKey]
}

// TestSwapSeesEveryOtherWrite: another writer creates, changes or deletes the object each time that a new state was
// computed.
func TestSwapSeesEveryOtherWrite(t *testing.T) {
	for name, c := range map[string]struct {
		before string   // "": no object
		others []string // what others make of it, one write each; "": they delete it
		want   string
		action kube.Action
		calls  int
	}{
		"created":                        {"", nil, "+", kube.Created, 1},
		"changed":                        {"a", nil, "a+", kube.Changed, 1},
		"created by another":             {"", []string{"b"}, "b+", kube.Changed, 2},
		"changed by others":              {"a", []string{"b", "c", "d"}, "d+", kube.Changed, 4},
		"deleted by another":             {"a", []string{""}, "+", kube.Created, 2},
		"deleted and created by another": {"a", []string{"", "b"}, "b+", kube.Changed, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cl, api := fakecluster.NewAPIServer(fakecluster.Config{})
			put := func(text string) {
				_, err := cl.Apply(t.Context(), fabric(text))
				require.NoError(t, err)
			}
			if c.before != "" {
				put(c.before)
			}
			calls := 0
			change, err := kube.Swap(t.Context(), cl, fabric(""), func(live *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				calls++
				text := ""
				if live != nil {
					text = live.Data[records.DataKey]
				}
				if calls <= len(c.others) {
					if other := c.others[calls-1]; other != "" {
						put(other)
					} else if _, err := cl.Delete(t.Context(), fabric("")); err != nil {
						t.Fatal(err)
					}
				}
				return fabric(text + "+"), nil
			})
			if err != nil || change.String() != string(c.action)+" ConfigMap liqonet/fabric" || calls != c.calls || dataOf(t, api) != c.want {
				t.Errorf("%s after %d calls, %q, %v; want %s after %d, %q", change, calls, dataOf(t, api), err, c.action, c.calls, c.want)
			}
		})
	}
}

// TestSwapGivesUpAfterATime: a slow API server has one writer after another be faster.
func TestSwapGivesUpAfterATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, _ := fakecluster.NewAPIServer(fakecluster.Config{})
		calls := 0
		overtaken := func(times int) error {
			calls = 0
			_, err := kube.Swap(t.Context(), cl, fabric(""), func(*corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if calls++; calls <= times {
					_, err := cl.Apply(t.Context(), fabric(fmt.Sprint("other", calls)))
					require.NoError(t, err)
				}
				return fabric(fmt.Sprint("own", times)), nil
			})
			return err
		}
		if err := overtaken(30); err != nil || calls != 31 {
			t.Errorf("30 others: %v after %d calls", err, calls)
		}
		if err := overtaken(1000); !apierrors.IsConflict(err) || calls < 40 || calls > 140 {
			t.Errorf("1,000 others: %v after %d calls", err, calls)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := kube.Swap(ctx, cl, fabric(""), func(*corev1.ConfigMap) (*corev1.ConfigMap, error) {
			cancel()
			_, err := cl.Apply(t.Context(), fabric("other"))
			return fabric("own"), err
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	})
}

func TestSwapWritesNothingThatIsThere(t *testing.T) {
	cl, api := fakecluster.NewAPIServer(fakecluster.Config{})
	_, err := cl.Apply(t.Context(), fabric("a"))
	require.NoError(t, err)
	for name, want := range map[string]*corev1.ConfigMap{"the same": fabric("a"), "nothing": nil} {
		api.ClearActions()
		change, err := kube.Swap(t.Context(), cl, fabric(""), func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return want, nil })
		if err != nil || change.Action != kube.Unchanged || len(api.Actions()) != 1 {
			t.Errorf("%s: %s, %v, %v", name, change, err, api.Actions())
		}
	}
}

func TestSwapRefuses(t *testing.T) {
	cl, api := fakecluster.NewAPIServer(fakecluster.Config{})
	refused := errors.New("refused")
	_, err := kube.Swap(t.Context(), cl, fabric(""), func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return fabric("a"), refused })
	if !errors.Is(err, refused) || dataOf(t, api) != "" {
		t.Errorf("error %v, data %q", err, dataOf(t, api))
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: records.DefaultNamespace, Name: records.FabricName}}
	_, err = api.CoreV1().ConfigMaps(theirs.Namespace).Create(t.Context(), theirs, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = kube.Swap(t.Context(), cl, fabric(""), func(*corev1.ConfigMap) (*corev1.ConfigMap, error) { return fabric("a"), nil })
	if err == nil || !strings.HasSuffix(err.Error(), "is not managed by liqonet (no label "+records.LabelComponent+")") || dataOf(t, api) != "" {
		t.Errorf("error %v, data %q", err, dataOf(t, api))
	}
}

// TestDeleteLeavesSuccessors: of what was listed, that is deleted which was listed.
func TestDeleteLeavesSuccessors(t *testing.T) {
	cl, api := fakecluster.NewAPIServer(fakecluster.Config{})
	_, err := cl.Apply(t.Context(), fabric("a"))
	require.NoError(t, err)
	listed, err := cl.List(t.Context(), records.LabelComponent)
	require.NoError(t, err)
	_, err = cl.Delete(t.Context(), fabric(""))
	require.NoError(t, err)
	_, err = cl.Apply(t.Context(), fabric("b"))
	require.NoError(t, err)
	changes, err := cl.Delete(t.Context(), listed...)
	if err != nil || changes[0].Action != kube.Absent || dataOf(t, api) != "b" {
		t.Errorf("%v, %v, data %q", changes, err, dataOf(t, api))
	}
}
