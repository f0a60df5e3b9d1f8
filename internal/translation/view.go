package translation

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
)

// view is what the records say at a moment.
type view struct {
	cluster translate.Cluster
	err     error // why there are no answers at all
}

// errNotInstalled says that there is no fabric.
var errNotInstalled = errors.New("this cluster has no fabric: liqonet is not installed, or on its way")

// newView reads the ConfigMaps of the fabric and of the peerings.
func newView(objects []*corev1.ConfigMap) view {
	fabric := ""
	peerings := make(map[string]string)
	for _, o := range objects {
		if o.Labels[records.LabelComponent] == records.ComponentFabric {
			fabric = o.Data[records.DataKey]
			continue
		}
		peerings[o.Name] = o.Data[records.DataKey]
	}
	if fabric == "" {
		return view{err: errNotInstalled}
	}
	var v view
	v.cluster, v.err = translate.Decode(fabric, peerings)
	return v
}
