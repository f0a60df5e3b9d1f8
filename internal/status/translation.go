package status

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/translation/authority"
)

// Translation is how the translation service of a cluster does.
type Translation struct {
	URL       string `json:"url"` // for clients in the cluster
	PodsReady int    `json:"podsReady"`
	Pods      int    `json:"pods"` // that there should be
	// AuthorityEnds is until when clients can trust its certificate authority; the zero value: not known.
	AuthorityEnds time.Time `json:"authorityEnds,omitzero"`
}

// ReadTranslation tells how the translation service of a cluster does; nil: it is not installed.
func ReadTranslation(ctx context.Context, o Options) (*Translation, error) {
	c := o.Cluster
	deployment, err := cluster.Find[*appsv1.Deployment](ctx, c, records.TranslationName)
	if deployment == nil || err != nil {
		return nil, err
	}
	s := &Translation{URL: TranslationURL(c.Namespace), Pods: 1, PodsReady: int(deployment.Status.ReadyReplicas)}
	if n := deployment.Spec.Replicas; n != nil {
		s.Pods = int(*n)
	}
	trusted, err := cluster.Find[*corev1.ConfigMap](ctx, c, records.TranslationAuthorityName)
	if trusted == nil || err != nil {
		return s, err
	}
	if certificate, err := authority.ParseCertificate([]byte(trusted.Data[records.TranslationAuthorityKey])); err == nil {
		s.AuthorityEnds = certificate.NotAfter
	}
	return s, nil
}

// TranslationURL is where clients in the cluster ask.
func TranslationURL(namespace string) string {
	return "https://" + records.TranslationHosts(namespace)[0]
}
