// Package observe has what was read of a cluster, for all that look at it: status, diagnose and trace judge the same
// values, so that they cannot contradict each other. Package read fills them. It has no client, and no secret.
package observe

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/ipam/translate"
)

// Part is a part of a snapshot, by its name in messages. Each is read by itself, and may fail by itself.
type Part string

// The parts.
const (
	Server    Part = "API server" // it answers
	Rights    Part = "rights"
	Elsewhere Part = "installation" // installations in other namespaces
	Records   Part = "records"
	Leases    Part = "reports of nodes"
	Nodes     Part = "nodes"
	Pods      Part = "pods"
	Objects   Part = "Deployments and Services"
	Keys      Part = "Secrets"
	Platform  Part = "network plugin"
	Servers   Part = "API servers and nodes" // addresses of API servers
	Policies  Part = "NetworkPolicies"
)

// Parts returns all parts.
func Parts() []Part {
	return []Part{Server, Rights, Elsewhere, Records, Leases, Nodes, Pods, Objects, Keys, Platform, Servers, Policies}
}

// The errors of parts that were not read for another reason than their own.
var (
	ErrNotRead   = errors.New("it was not read")
	ErrUnreached = errors.New("the API server does not answer")
)

// Snapshot is what was read of one cluster. A part with an error is zero.
type Snapshot struct {
	Context, Namespace string
	At                 time.Time // when it was read last, by the reader's clock
	Errors             map[Part]error

	Missing []string // Rights: those of level view that the user lacks
	Others  []string // Elsewhere: namespaces of installations that are younger than the cluster's own

	// Records. Those that do not decode are in Damaged, with the reason, by the name of the ConfigMap.
	ConfigMaps map[string]*corev1.ConfigMap
	Fabric     *records.Fabric
	Peerings   map[string]*records.Peering // by name, of whatever there is of them; nil: no record that decodes
	Places     map[records.GatewayID]*records.Gateway
	Statuses   map[records.GatewayID]*records.Status
	Registry   *ipam.Registry // nil: none, or damaged
	Damaged    map[string]error
	Sightings  map[records.GatewayID]Sighting // of Statuses

	Leases         []*coordinationv1.Lease
	Reports        []records.Node // in Leases; those that decode
	DamagedReports string         // why others do not; "" if all do

	Nodes   []*corev1.Node // that can run helpers
	Pods    []*corev1.Pod
	Refused []*kube.PodError // why pods were not created: of each workload the newest reason

	Objects  kube.Live
	Keys     map[string]Key // in all Secrets of the namespace, by their names
	Platform discover.Discovery
	Servers  []netip.Addr
	Policies []networkingv1.NetworkPolicy
}

// Sighting is the first reading of a gateway's report. The age of a report whose arrival was observed is measured with
// the reader's clock alone.
type Sighting struct {
	Since     time.Time // by the reader's clock
	Successor bool      // an earlier report had been read before
}

// Key describes the keys of a gateway.
type Key struct {
	Peering   string         // by its label; "": none
	Driver    records.Driver // of the tunnels to this gateway
	Preshared string         // a hash of the preshared key
	Err       error          // not nil: the Secret does not decode
}

// Lacks returns the first error of some parts, with the part's name; nil if all were read.
func (s *Snapshot) Lacks(parts ...Part) error {
	for _, p := range parts {
		if err := s.Errors[p]; err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// Names returns the names of all peerings, sorted.
func (s *Snapshot) Names() []string { return slices.Sorted(maps.Keys(s.Peerings)) }

// Problem returns why the record of that name is not there, such as "ConfigMap fabric is missing"; "" if it is.
func (s *Snapshot) Problem(name string) string {
	switch err, damaged := s.Damaged[name]; {
	case damaged:
		return fmt.Sprintf("ConfigMap %s cannot be read: %v", name, err)
	case s.ConfigMaps[name] == nil:
		return "ConfigMap " + name + " is missing"
	}
	return ""
}

// PeeringWith returns the name of the peering with another cluster; "" if there is none. If there is no record of it
// that can be read, the name decides.
func (s *Snapshot) PeeringWith(peer records.Fabric) string {
	for _, name := range s.Names() {
		if p := s.Peerings[name]; p != nil && p.Peer.ClusterID == peer.ClusterID {
			return name
		}
	}
	if p, exists := s.Peerings[peer.Name]; exists && p == nil {
		return peer.Name
	}
	return ""
}

// Translator returns the translation of addresses for a peering.
func (s *Snapshot) Translator(peering string) (translate.Translator, error) {
	t, err := translate.Read(slices.Collect(maps.Values(s.ConfigMaps)))
	if err != nil {
		return translate.Translator{}, fmt.Errorf("records of cluster %q: %w", s.Context, err)
	}
	return t.Peer(peering)
}

// Witnesses returns the reports of nodes on each gateway, by the node's name: "" if its path works, else the fault.
func (s *Snapshot) Witnesses() map[records.GatewayID]map[string]string {
	all := make(map[records.GatewayID]map[string]string)
	for _, n := range s.Reports {
		for gateway, fault := range n.Witness {
			if all[gateway] == nil {
				all[gateway] = make(map[string]string)
			}
			all[gateway][n.Name] = fault
		}
	}
	return all
}

// NodeNames returns the names of the nodes that can run helpers, sorted: those that are Ready, and the others.
func (s *Snapshot) NodeNames() (ready, notReady []string) {
	for _, n := range s.Nodes {
		if kube.Ready(n) {
			ready = append(ready, n.Name)
		} else {
			notReady = append(notReady, n.Name)
		}
	}
	slices.Sort(ready)
	slices.Sort(notReady)
	return ready, notReady
}

// PodsOf returns the pods that a label selector matches.
func (s *Snapshot) PodsOf(selector string) []*corev1.Pod {
	matching, err := labels.Parse(selector)
	if err != nil {
		return nil // selectors are those of this program
	}
	return slices.DeleteFunc(slices.Clone(s.Pods), func(p *corev1.Pod) bool { return !matching.Matches(labels.Set(p.Labels)) })
}

// PodProblem returns why the first pod of a workload that a label selector matches cannot start, or was not created;
// nil if none has a problem.
func (s *Snapshot) PodProblem(workload, selector string) *kube.PodError {
	pods := s.PodsOf(selector)
	for _, pod := range pods {
		if problem := kube.ProblemOf(pod); problem != nil {
			return problem
		}
	}
	i := slices.IndexFunc(s.Refused, func(p *kube.PodError) bool { return p.Workload == workload })
	if len(pods) > 0 || i < 0 {
		return nil
	}
	return s.Refused[i]
}

// Reservations compares the reservations with the peerings and with the cluster's present ranges. It needs the parts
// Records, Objects and Platform, and fails if one of the records does not decode.
func (s *Snapshot) Reservations() ([]choose.Finding, error) {
	if err := s.Lacks(Records, Objects, Platform); err != nil {
		return nil, err
	}
	state := choose.State{Registry: s.Registry, Fabric: s.Fabric, Assumed: len(s.Platform.PodCIDRs.Prefixes) == 0}
	for _, name := range slices.Sorted(maps.Keys(s.Damaged)) {
		switch id, _ := records.IdentityOf(name); id.Component {
		case records.ComponentPeering, records.ComponentFabric, records.ComponentIPAM:
			return nil, fmt.Errorf("read ConfigMap %s: %w", name, s.Damaged[name])
		}
	}
	if s.Registry == nil {
		var err error
		if state.Registry, err = ipam.New(ipam.DefaultPools()...); err != nil {
			return nil, err
		}
	}
	for _, name := range s.Names() {
		if p := s.Peerings[name]; p != nil {
			state.Peerings = append(state.Peerings, *p)
		}
	}
	begun := func(peering string) {
		if peering != "" {
			state.Begun = append(state.Begun, peering)
		}
	}
	for _, o := range s.Objects.All() {
		begun(o.GetLabels()[records.LabelPeering])
	}
	for _, o := range s.ConfigMaps {
		begun(o.Labels[records.LabelPeering])
	}
	for _, key := range s.Keys {
		begun(key.Peering)
	}
	found := choose.Ranges{Pods: s.Platform.PodCIDRs.Prefixes, Services: s.Platform.ServiceCIDRs.Prefixes, Nodes: s.Platform.NodeNetworks.Prefixes}
	state.Own = choose.Desired(found, choose.Ranges{}, s.Fabric)
	return state.Findings(), nil
}

// StoredAt returns when the record in a ConfigMap was last changed, by the clock of the API server; zero if unknown.
func StoredAt(object *corev1.ConfigMap) (at time.Time) {
	for _, m := range object.ManagedFields {
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if m.Operation != metav1.ManagedFieldsOperationUpdate || m.Time == nil || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Data["f:"+records.DataKey]; ok && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}
