package peering

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/cluster/clustertest"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/removal"
	"liqonet.io/liqonet/internal/status"
	"liqonet.io/liqonet/internal/steps"
	"liqonet.io/liqonet/internal/translation/authority"
	"liqonet.io/liqonet/templates"
)

// initialised runs Init in a world; translation is the flag.
func initialised(t *testing.T, w *world, translation *bool, change func(*InitOptions)) (InitResult, error) {
	t.Helper()
	o := InitOptions{Side: Side{Cluster: w.Cluster}, Installation: Installation{Image: "liqonet:1", Translation: translation}, Timeout: time.Minute}
	if change != nil {
		change(&o)
	}
	return Init(t.Context(), o, &recorder{})
}

func authorityOf(t *testing.T, w *world) authority.Authority {
	t.Helper()
	s, err := readTranslationService(t.Context(), w.Cluster)
	if err != nil || s.authority == nil {
		t.Fatal(s, err)
	}
	return *s.authority
}

func imageOfTranslation(t *testing.T, w *world) string {
	t.Helper()
	d, err := w.kube.AppsV1().Deployments(w.Namespace).Get(t.Context(), "translation", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template.Spec.Containers[0].Image
}

// hasTranslation reports whether anything of the service is in a cluster.
func hasTranslation(t *testing.T, w *world) bool {
	t.Helper()
	return slices.ContainsFunc(w.left(t), func(name string) bool { return strings.Contains(name, "translation") })
}

// TestTranslationService: it is off unless asked for, then stays and keeps its authority, through init and connect,
// until it is asked away.
func TestTranslationService(t *testing.T) {
	yes, no := true, false
	synctest.Test(t, func(t *testing.T) {
		a, b := twoWorlds()
		live(t, a, b)
		r, err := initialised(t, a, nil, nil)
		if err != nil || r.Cluster.Translation != "" || hasTranslation(t, a) {
			t.Fatalf("without the flag: %+v, %v, %v", r, err, a.left(t))
		}
		r, err = initialised(t, a, &yes, nil)
		if err != nil || !r.Changed || r.Cluster.Translation != "https://translation.liqonet.svc" {
			t.Fatalf("with the flag: %+v, %v", r, err)
		}
		if last := r.Stages[len(r.Stages)-1].Name; last != steps.StageTranslation {
			t.Errorf("the last stage is %s", last)
		}
		first := authorityOf(t, a)
		for what, flag := range map[string]*bool{"the flag again": &yes, "no flag": nil} {
			r, err := initialised(t, a, flag, nil)
			if err != nil || r.Changed || r.Cluster.Translation == "" {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
		}
		if _, err := Connect(t.Context(), connectOptions(a, b), &recorder{}); err != nil {
			t.Fatal(err)
		}
		if hasTranslation(t, b) {
			t.Errorf("connect has installed it: %v", b.left(t))
		}
		if _, err := initialised(t, a, nil, func(o *InitOptions) { o.Image, o.Update = "newer", true }); err != nil {
			t.Fatal(err)
		}
		if got := imageOfTranslation(t, a); got != "newer" {
			t.Errorf("after an update of the installation its image is %q", got)
		}
		if again := authorityOf(t, a); !bytes.Equal(again.Certificate(), first.Certificate()) {
			t.Error("clients would have to trust another authority")
		}
		r, err = initialised(t, a, &no, func(o *InitOptions) { o.Image = "newer" })
		if err != nil || !r.Changed || r.Cluster.Translation != "" || hasTranslation(t, a) {
			t.Errorf("asked away: %+v, %v, %v", r, err, a.left(t))
		}
		if r, err := initialised(t, a, &no, func(o *InitOptions) { o.Image = "newer" }); err != nil || r.Changed {
			t.Errorf("asked away again: %+v, %v", r, err)
		}
	})
}

func TestResetRemovesTranslation(t *testing.T) {
	yes := true
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		if _, err := initialised(t, a, &yes, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := removal.Reset(t.Context(), removal.ResetOptions{Cluster: a.Cluster, Timeout: time.Minute}, &recorder{}); err != nil {
			t.Fatal(err)
		}
		if left := a.left(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestDueAuthorityIsReplaced on the user's word alone: clients must be told.
func TestDueAuthorityIsReplaced(t *testing.T) {
	yes := true
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		if _, err := initialised(t, a, &yes, nil); err != nil {
			t.Fatal(err)
		}
		old, err := authority.New("elsewhere.example") // for other names, as after a change of what it is called
		if err != nil {
			t.Fatal(err)
		}
		certificate, key, err := old.Encode()
		if err != nil {
			t.Fatal(err)
		}
		secret := authorityObject(a.Namespace, certificate, key)
		if _, err := a.kube.CoreV1().Secrets(a.Namespace).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var differs *steps.DifferenceError
		if _, err := initialised(t, a, nil, nil); !errors.As(err, &differs) || !strings.Contains(err.Error(), "is replaced") {
			t.Errorf("without --update: %v", err)
		}
		if _, err := initialised(t, a, nil, func(o *InitOptions) { o.Update = true }); err != nil {
			t.Fatal(err)
		}
		if made := authorityOf(t, a); made.Due("translation.liqonet.svc", "translation.liqonet.svc.cluster.local") {
			t.Error("it was not made anew")
		}
		trusted, err := a.kube.CoreV1().ConfigMaps(a.Namespace).Get(t.Context(), "translation-ca", metav1.GetOptions{})
		if made := authorityOf(t, a); err != nil || trusted.Data["ca.crt"] != string(made.Certificate()) {
			t.Errorf("clients are told of another authority: %v", err)
		}
	})
}

func TestDamagedAuthorityIsRefused(t *testing.T) {
	yes := true
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		live(t, a)
		secret := authorityObject(a.Namespace, []byte("x"), []byte("hunter2"))
		if _, err := a.kube.CoreV1().Secrets(a.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := initialised(t, a, &yes, nil)
		if err == nil || !strings.Contains(hint.Of(err), "delete the Secret") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v, hint %q", err, hint.Of(err))
		}
	})
}

// TestPermissionsOfTranslation: what only the service needs is asked of who installs, as reset removes it too, and
// not of who connects what is installed.
func TestPermissionsOfTranslation(t *testing.T) {
	denied := []cluster.Permission{
		{Verb: "*", Group: "*", Resource: "*"}, {Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"},
	}
	c, _ := clustertest.New(clustertest.Config{Denied: denied})
	if err := steps.CheckPermissions(t.Context(), c, templates.Operate); err != nil {
		t.Errorf("to connect: %v", err)
	}
	var refused *cluster.PermissionError
	if err := steps.CheckPermissions(t.Context(), c, templates.Administer); !errors.As(err, &refused) || len(refused.Missing) != 1 {
		t.Errorf("to install: %v", err)
	}
}

func TestTranslationStatus(t *testing.T) {
	yes := true
	synctest.Test(t, func(t *testing.T) {
		a, _ := twoWorlds()
		o := status.Options{Cluster: a.Cluster}
		if s, err := status.ReadTranslation(t.Context(), o); s != nil || err != nil {
			t.Errorf("not installed: %+v, %v", s, err)
		}
		live(t, a)
		if _, err := initialised(t, a, &yes, nil); err != nil {
			t.Fatal(err)
		}
		d, err := a.kube.AppsV1().Deployments(a.Namespace).Get(t.Context(), "translation", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		replicas := int32(2)
		d.Spec.Replicas, d.Status = &replicas, appsv1.DeploymentStatus{AvailableReplicas: 1, ReadyReplicas: 1, Replicas: 2, UpdatedReplicas: 2}
		if _, err := a.kube.AppsV1().Deployments(a.Namespace).Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		s, err := status.ReadTranslation(t.Context(), o)
		want := status.Translation{URL: "https://translation.liqonet.svc", Pods: 2, PodsReady: 1, AuthorityEnds: authorityOf(t, a).Until()}
		if err != nil || s == nil || *s != want {
			t.Errorf("%+v, %v, want %+v", s, err, want)
		}
	})
}

// TestRemovedSettingsGo: settings that a user takes back leave the service, as they leave the helpers. An earlier release created its
// Deployment so that they stayed.
func TestRemovedSettingsGo(t *testing.T) {
	limits := func(cpu bool) func(*InitOptions) {
		return func(o *InitOptions) {
			o.Update = true
			o.Pods.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
			if cpu {
				o.Pods.Limits[corev1.ResourceCPU] = resource.MustParse("500m")
			}
		}
	}
	for name, earlier := range map[string]bool{"of this release": false, "of an earlier release": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := twoWorlds()
				live(t, a)
				if _, err := initialised(t, a, new(true), limits(true)); err != nil {
					t.Fatal(err)
				}
				deployments := a.kube.AppsV1().Deployments(a.Namespace)
				get := func() *appsv1.Deployment {
					d, err := deployments.Get(t.Context(), "translation", metav1.GetOptions{})
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				if d := get(); earlier {
					a.set(func() {
						d.ManagedFields, d.ResourceVersion, d.UID = nil, "", ""
						err := deployments.Delete(t.Context(), d.Name, metav1.DeleteOptions{})
						if err == nil {
							_, err = deployments.Create(t.Context(), d, metav1.CreateOptions{FieldManager: cluster.FieldManager})
						}
						if err != nil {
							t.Fatal(err)
						}
					})
				}
				var differs *steps.DifferenceError
				_, err := initialised(t, a, nil, func(o *InitOptions) { limits(false)(o); o.Update = false })
				if !errors.As(err, &differs) || !earlier && !strings.Contains(err.Error(), "Deployment translation: spec.template.spec.containers[0].resources.limits.cpu") {
					t.Errorf("without --update: %v", err)
				}
				r, err := initialised(t, a, nil, limits(false))
				if err != nil {
					t.Fatal(err)
				}
				changed := func(c cluster.Change) bool { return c.Kind == "Deployment" && c.Action == cluster.Changed }
				got := get().Spec.Template.Spec.Containers[0].Resources.Limits
				if _, there := got[corev1.ResourceCPU]; there || got.Memory().String() != "256Mi" || !slices.ContainsFunc(r.Objects, changed) {
					t.Errorf("limits %v, changes %v", got, r.Objects)
				}
				if r, err := initialised(t, a, nil, limits(false)); err != nil || r.Changed {
					t.Errorf("again: %v, %v", r.Objects, err)
				}
			})
		})
	}
}
