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

// newView reads the ConfigMaps of the fabric and of the peerings. What each is follows from its name: whoever may write
// one may write any label.
func newView(objects []*corev1.ConfigMap) view {
	fabric := ""
	peerings := make(map[string]string)
	for _, o := range objects {
		switch id, _ := records.IdentityOf(o.Name); id.Component {
		case records.ComponentFabric:
			fabric = o.Data[records.DataKey]
		case records.ComponentPeering:
			peerings[o.Name] = o.Data[records.DataKey]
		}
	}
	if fabric == "" {
		return view{err: errNotInstalled}
	}
	var v view
	v.cluster, v.err = translate.Decode(fabric, peerings)
	return v
}
