package peering

import (
	"bytes"
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/translation/authority"
	"liqonet.io/liqonet/templates"
)

// translationService is what a cluster has of the translation service. The zero value: nothing.
type translationService struct {
	stands    bool                 // it was installed
	authority *authority.Authority // nil: none yet
}

// readTranslationService finds out what a cluster has of the translation service.
func readTranslationService(ctx context.Context, c *cluster.Cluster) (s translationService, err error) {
	deployment, err := cluster.Find[*appsv1.Deployment](ctx, c, records.TranslationName)
	if err != nil {
		return s, err
	}
	s.stands = deployment != nil
	secret, err := cluster.Find[*corev1.Secret](ctx, c, records.TranslationName)
	if secret == nil || err != nil {
		return s, err
	}
	s.authority, err = parseAuthority(c, secret)
	return s, err
}

// parseAuthority reads the authority in a Secret.
func parseAuthority(c *cluster.Cluster, secret *corev1.Secret) (*authority.Authority, error) {
	a, err := authority.Parse(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, hint.With(fmt.Errorf("read Secret %s/%s of cluster %q: %w", secret.Namespace, secret.Name, c.Context, err),
			"delete the Secret, then run liqoctl network init --translation: a new authority is made, which clients must be told")
	}
	return &a, nil
}

// translates reports whether the cluster is to have a translation service: on the user's word, else as it was.
func (s *site) translates() bool {
	if s.options.Translation != nil {
		return *s.options.Translation
	}
	return s.found.translation.stands
}

// installTranslation installs the translation service, or removes it, as the user wants, if he may.
func (s *site) installTranslation(ctx context.Context) error {
	if s.standing != "" {
		return nil
	}
	if !s.translates() {
		if s.options.Translation == nil {
			return nil
		}
		return s.removeTranslation(ctx)
	}
	for {
		a, err := s.agreeOnAuthority(ctx)
		if err != nil {
			return err
		}
		objects, err := s.translationObjects(a)
		if err != nil {
			return err
		}
		if err := s.applyTranslation(ctx, objects); err != nil || !s.translates() || s.cluster.IsDryRun() {
			return err
		}
		// What clients are told to trust must be what the service has now.
		now, err := readTranslationService(ctx, s.cluster)
		if err != nil || now.authority == nil || bytes.Equal(now.authority.Certificate(), a.Certificate()) {
			return err
		}
	}
}

// agreeOnAuthority returns the service's certificate authority, which is made if there is none, or a due one. Of several
// runs that make one at the same time the first one's counts, as clients may trust it already.
func (s *site) agreeOnAuthority(ctx context.Context) (a authority.Authority, err error) {
	namespace := s.cluster.Namespace
	change, err := cluster.Swap(ctx, s.cluster, authorityObject(namespace, nil, nil), func(live *corev1.Secret) (*corev1.Secret, error) {
		if live != nil {
			there, err := parseAuthority(s.cluster, live)
			if err != nil {
				return nil, err
			}
			if a = *there; !there.Due(records.TranslationHosts(namespace)...) {
				return nil, nil
			}
		}
		if a, err = authority.New(records.TranslationHosts(namespace)...); err != nil {
			return nil, err
		}
		certificate, key, err := a.Encode()
		return authorityObject(namespace, certificate, key), err
	})
	s.note(change)
	return a, err
}

// applyTranslation applies the service. Where the user does not speak of it and somebody else removes it at this moment,
// as its missing Deployment tells, all of it goes.
func (s *site) applyTranslation(ctx context.Context, objects []cluster.Object) error {
	compared := s.found.translation.stands && s.found.translation.authority != nil // by compare
	last := len(objects) - 1
	deployment, _ := objects[last].(*appsv1.Deployment)
	if err := s.apply(ctx, compared, objects[:last]...); err != nil {
		return err
	}
	change, err := cluster.Renew(ctx, s.cluster, deployment, func(live *appsv1.Deployment) (*appsv1.Deployment, error) {
		if live == nil && s.options.Translation == nil || live != nil && compared && !s.options.Update {
			return nil, nil
		}
		return deployment, nil
	})
	s.note(change)
	if err != nil || change.Action != cluster.Absent {
		return err
	}
	s.found.translation.stands = false
	return s.removeTranslation(ctx)
}

// translationObjects renders the service for an authority, without the authority's Secret. Its Deployment is the last.
func (s *site) translationObjects(a authority.Authority) ([]cluster.Object, error) {
	return templates.Translation(templates.TranslationValues{Namespace: s.cluster.Namespace, Image: s.options.Image, Pods: s.pods(), Certificate: a.Certificate()})
}

// authorityObject is the Secret that the service's pods mount.
func authorityObject(namespace string, certificate, key []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: records.TranslationName, Namespace: namespace,
			Labels: map[string]string{records.LabelComponent: records.ComponentTranslation},
		},
		Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	}
}

// removeTranslation removes the service, whatever is left of it.
func (s *site) removeTranslation(ctx context.Context) error {
	// Image and authority do not matter to what is deleted.
	objects, err := templates.Translation(templates.TranslationValues{Namespace: s.cluster.Namespace, Image: inventory.AnyImage})
	if err != nil {
		return err
	}
	return s.remove(ctx, append(objects, authorityObject(s.cluster.Namespace, nil, nil))...)
}
