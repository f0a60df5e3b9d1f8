package cache

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TooLong replaces a text, and is rejected as damaged.
const TooLong = "too long"

// readByHelpers reports whether helpers read the record in the ConfigMap of that name: all except the gateways' reports
// for users.
func readByHelpers(name string) bool {
	id, known := records.IdentityOf(name)
	return known && id.Component != records.ComponentStatus
}

// Trimmed returns an object without the fields that no helper reads; if it does not matter, without its data.
func Trimmed(obj any, matters bool) any {
	if cm, ok := obj.(*corev1.ConfigMap); ok && !matters {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Namespace: cm.Namespace, ResourceVersion: cm.ResourceVersion, UID: cm.UID}}
	}
	if cm, ok := obj.(*corev1.ConfigMap); ok && readByHelpers(cm.Name) {
		id, _ := records.IdentityOf(cm.Name)
		text, there := cm.Data[records.DataKey]
		if len(text) > records.MaxSize(id.Component) {
			text = TooLong
		}
		cm.Annotations, cm.Data, cm.BinaryData = nil, nil, nil
		if there {
			cm.Data = map[string]string{records.DataKey: text}
		}
	}
	if p, ok := obj.(*corev1.Pod); ok {
		return trimmedPod(p)
	}
	if l, ok := obj.(*coordinationv1.Lease); ok {
		for key, text := range l.Annotations {
			if len(text) > records.MaxSize(records.ComponentNode) {
				l.Annotations[key] = TooLong
			}
		}
	}
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj
}

// trimmedPod returns the fields of a pod that helpers read. Settings of its containers, with passwords, are in no
// helper.
func trimmedPod(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork},
		Status: corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs},
	}
}

// Record decodes the record in a ConfigMap.
func Record[T records.Document](cm *corev1.ConfigMap) (T, error) {
	return records.Read[T](cm.Name, cm.Labels, cm.Data)
}
