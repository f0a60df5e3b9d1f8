package cache

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/records"
)

// TooLong replaces a text, and is rejected as damaged.
const TooLong = "too long"

// Trimmed returns an object without the fields that no helper reads; if it does not matter, without its data.
func Trimmed(obj any, matters bool) any {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if !matters {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace, ResourceVersion: o.ResourceVersion, UID: o.UID}}
		}
		trimRecord(o)
	case *corev1.Pod:
		return trimmedPod(o)
	case *coordinationv1.Lease:
		for key, text := range o.Annotations {
			if len(text) > records.MaxSize(records.ComponentNode) {
				o.Annotations[key] = TooLong
			}
		}
	}
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj
}

// trimRecord removes all but the record from a ConfigMap, except from the gateways' reports for users.
func trimRecord(cm *corev1.ConfigMap) {
	id, known := records.IdentityOf(cm.Name)
	if !known || id.Component == records.ComponentStatus {
		return
	}
	text, there := cm.Data[records.DataKey]
	if len(text) > records.MaxSize(id.Component) {
		text = TooLong
	}
	cm.Annotations, cm.Data, cm.BinaryData = nil, nil, nil
	if there {
		cm.Data = map[string]string{records.DataKey: text}
	}
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
