package translation

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/translate"
)

// view is what the records say at a moment. One peering's damaged record costs no other peering its answers.
type view struct {
	cluster translate.Cluster // of the peerings whose records are in order
	damaged map[string]error  // why others are not, by name
	err     error             // why there are no answers at all
}

// errNotInstalled says that there is no fabric.
var errNotInstalled = errors.New("this cluster has no fabric: liqonet is not installed, or on its way")

// damagedError says that a record cannot be read. Until it can, an answer would be a guess.
type damagedError struct {
	peer string
	err  error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("the record of peering %q: %v", e.peer, e.err)
}
func (e *damagedError) Unwrap() error { return e.err }

// newView reads the ConfigMaps of the fabric and of the peerings.
func newView(objects []*corev1.ConfigMap) view {
	fabric := ""
	peerings := make(map[string]string)
	for _, o := range objects {
		if o.Labels[records.LabelComponent] == records.ComponentFabric {
			fabric = o.Data[records.DataKey]
			continue
		}
		peerings[strings.TrimPrefix(o.Name, records.PeeringName(""))] = o.Data[records.DataKey]
	}
	if fabric == "" {
		return view{err: errNotInstalled}
	}
	if _, err := translate.Decode(fabric); err != nil {
		return view{err: err}
	}
	v := view{damaged: make(map[string]error)}
	var translators []translate.Translator
	for _, name := range slices.Sorted(maps.Keys(peerings)) {
		t, err := translator(name, fabric, peerings[name])
		if err != nil {
			v.damaged[name] = err
			continue
		}
		translators = append(translators, t)
	}
	v.cluster, v.err = translate.NewCluster(translators...)
	return v
}

// translator reads one peering's record.
func translator(name, fabric, peering string) (translate.Translator, error) {
	alone, err := translate.Decode(fabric, peering)
	if err != nil {
		return translate.Translator{}, err
	}
	return alone.Peer(name) // a record of another name is in the wrong object
}

// damage tells of all records that cannot be read; nil: there are none.
func (v view) damage() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(v.damaged)) {
		errs = append(errs, &damagedError{name, v.damaged[name]})
	}
	return errors.Join(errs...)
}

// peer returns the translator of a peering. The error is a *damagedError or a *translate.UnknownPeerError.
func (v view) peer(name string) (translate.Translator, error) {
	if err, ok := v.damaged[name]; ok {
		return translate.Translator{}, &damagedError{name, err}
	}
	return v.cluster.Peer(name)
}

// whose tells to which peer an address belongs. What may be a peer's whose record is damaged is a *damagedError,
// else what is nobody's is a *translate.UnmappedError.
func (v view) whose(a netip.Addr) (translate.Address, error) {
	answer, err := v.cluster.Whose(a)
	if err != nil && len(v.damaged) > 0 {
		return translate.Address{}, v.damage()
	}
	return answer, err
}
