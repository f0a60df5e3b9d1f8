package translation

import (
	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/ipam/translate"
)

// view is what the records say at a moment.
type view struct {
	cluster translate.Cluster
	err     error // why there are no answers at all
}

// newView reads the ConfigMaps of the fabric and of the peerings. What each is follows from its name: whoever may write
// one may write any label.
func newView(objects []*corev1.ConfigMap) (v view) {
	v.cluster, v.err = translate.Read(objects)
	return v
}
