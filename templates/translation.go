package templates

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TranslationPort is the TCP port of the translation service's pods.
const TranslationPort = 8443

// AuthorityPath is the directory in a pod of the translation service where its Secret is mounted, one file a key.
const AuthorityPath = "/etc/liqonet/authority"

// annotationAuthority has pods replaced with their certificate authority: they read it once.
const annotationAuthority = "liqonet.io/authority"

// TranslationValues are what differs between translation services.
type TranslationValues struct {
	Namespace string
	Image     string
	Pods      Pods
	// Certificate of the service's authority, as PEM: what clients trust.
	Certificate []byte
}

// TranslationPods is the label selector of the translation service's pods.
func TranslationPods() string { return records.LabelComponent + "=" + records.ComponentTranslation }

// Translation renders the objects of the translation service, and the Role to be bound to its clients. The Secret
// with its certificate authority is not among them.
func Translation(v TranslationValues) ([]Object, error) {
	if err := errors.Join(validateNamespace(v.Namespace), validateImage(v.Image), v.Pods.Validate()); err != nil {
		return nil, fmt.Errorf("render the translation service: %w", err)
	}
	var r reader
	labels := records.Identity{Component: records.ComponentTranslation}.Labels()
	account, granted := r.account("translation", v.Namespace, records.TranslationName, labels)
	clients := read[rbacv1.Role](&r, "translation/clientrole.yaml")
	trusted := read[corev1.ConfigMap](&r, "translation/configmap.yaml")
	service := read[corev1.Service](&r, "translation/service.yaml")
	deployment := read[appsv1.Deployment](&r, "translation/deployment.yaml")
	if r.err != nil {
		return nil, r.err
	}
	for _, o := range []Object{service, deployment} {
		identify(o, v.Namespace, records.TranslationName, labels)
	}
	identify(clients, v.Namespace, records.TranslationClientName, labels)
	identify(trusted, v.Namespace, records.TranslationAuthorityName, labels)
	trusted.Data = map[string]string{records.TranslationAuthorityKey: string(v.Certificate)}
	service.Spec.Selector = labels
	v.setDeployment(deployment, account.Name, labels)
	return append(granted, clients, trusted, service, deployment), nil
}

func (v TranslationValues) setDeployment(deployment *appsv1.Deployment, account string, labels map[string]string) {
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	template := &deployment.Spec.Template
	sum := sha256.Sum256(v.Certificate)
	template.Annotations = map[string]string{annotationAuthority: hex.EncodeToString(sum[:8])}
	v.Pods.set(deployment, template, labels)
	template.Spec.Tolerations = append(template.Spec.Tolerations, v.Pods.GatewayTolerations...)
	template.Spec.ServiceAccountName = account
	template.Spec.Volumes[0].Secret.SecretName = records.TranslationName
	template.Spec.Containers[0].Image = v.Image
}
