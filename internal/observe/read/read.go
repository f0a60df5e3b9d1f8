// Package read fills snapshots of package observe: each part in parallel, and each with its own error. It changes
// nothing.
package read

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/ipam/store"
	"liqonet.io/liqonet/templates"
)

// reader reads one part of one snapshot.
type reader struct {
	*observe.Snapshot

	cluster *kube.Cluster
}

// Take reads some parts of a cluster. Errors are those of parts; if the API server does not answer, it is that of
// observe.Server.
func Take(ctx context.Context, c *kube.Cluster, parts ...observe.Part) *observe.Snapshot {
	s := Nothing(c)
	Again(ctx, c, s, parts...)
	return s
}

// Nothing returns the snapshot of a cluster of which nothing was read yet.
func Nothing(c *kube.Cluster) *observe.Snapshot {
	s := &observe.Snapshot{Context: c.Context, Namespace: c.Namespace, Errors: make(map[observe.Part]error)}
	for _, p := range observe.Parts() {
		s.Errors[p] = observe.ErrNotRead
	}
	return s
}

// All is Take for several clusters, all at once.
func All(ctx context.Context, clusters []*kube.Cluster, parts ...observe.Part) []*observe.Snapshot {
	snapshots := make([]*observe.Snapshot, len(clusters))
	var all sync.WaitGroup
	for i, c := range clusters {
		all.Go(func() { snapshots[i] = Take(ctx, c, parts...) })
	}
	all.Wait()
	return snapshots
}

// Again reads parts of a snapshot anew, or for the first time.
func Again(ctx context.Context, c *kube.Cluster, s *observe.Snapshot, parts ...observe.Part) {
	defer func() { s.At = time.Now() }()
	if s.Errors[observe.Server] = c.Reach(ctx); s.Errors[observe.Server] != nil {
		for _, p := range parts {
			s.Errors[p] = observe.ErrUnreached
		}
		return
	}
	r := reader{s, c}
	from := map[observe.Part]func(context.Context) error{
		observe.Rights: r.rights, observe.Elsewhere: r.elsewhere, observe.Records: r.records, observe.Leases: r.leases, observe.Nodes: r.nodes,
		observe.Pods: r.pods, observe.Objects: r.objects, observe.Keys: r.keys, observe.Platform: r.platform, observe.Servers: r.servers, observe.Policies: r.policies,
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	recorded := make(chan struct{}) // closed when records have been read, or are not read
	if !slices.Contains(parts, observe.Records) {
		close(recorded)
	}
	for _, p := range parts {
		all.Go(func() {
			if p == observe.Objects || p == observe.Keys {
				// Commands reserve ranges, which are records, before they make objects: each peering of a
				// reservation that is read has its objects in what is read after it.
				<-recorded
			}
			err := from[p](ctx)
			if p == observe.Records {
				close(recorded)
			}
			mu.Lock()
			defer mu.Unlock()
			s.Errors[p] = err
		})
	}
	all.Wait()
}

// rights reads which rights of level view are missing. Level view works without discovery, so its rights are not.
func (r reader) rights(ctx context.Context) error {
	r.Missing = nil
	err := inventory.CheckPermissions(ctx, r.cluster, templates.View)
	refused, ok := errors.AsType[*kube.PermissionError](err)
	if !ok {
		return err
	}
	needed, err := inventory.NeededPermissions(r.Namespace, templates.View)
	for _, p := range refused.Missing {
		if slices.Contains(needed, p) && (!slices.Contains(kube.DiscoveryPermissions(), p) || p.Resource == "nodes") {
			r.Missing = append(r.Missing, p.String())
		}
	}
	return err
}

func (r reader) elsewhere(ctx context.Context) (err error) {
	r.Others, err = inventory.CheckElsewhere(ctx, r.cluster)
	return err
}

// records reads all ConfigMaps, whose names determine their kinds. A peering exists if it has a record, an object of a
// gateway, or a reservation.
func (r reader) records(ctx context.Context) error {
	all, err := kube.All[*corev1.ConfigMap](ctx, r.cluster, "")
	if err != nil {
		return err
	}
	s := r.Snapshot
	earlier := s.Statuses
	s.ConfigMaps, s.Damaged, s.Peerings = make(map[string]*corev1.ConfigMap), make(map[string]error), make(map[string]*records.Peering)
	s.Places, s.Statuses = make(map[records.GatewayID]*records.Gateway), make(map[records.GatewayID]*records.Status)
	s.Fabric, s.Registry = nil, nil
	var mu sync.Mutex
	var decoding errgroup.Group // a report of many nodes takes milliseconds
	decoding.SetLimit(runtime.GOMAXPROCS(0))
	for _, object := range all {
		s.ConfigMaps[object.Name] = object
		id, ok := records.IdentityOf(object.Name)
		if !ok {
			continue
		}
		decoding.Go(func() error {
			decoded, err := decode(object, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.Damaged[object.Name] = err
			}
			if id.Peering != "" && s.Peerings[id.Peering] == nil {
				s.Peerings[id.Peering] = nil
			}
			if err == nil && decoded != nil {
				decoded(s)
			}
			return nil
		})
	}
	_ = decoding.Wait() // errors are in Damaged
	s.Sightings = sightings(earlier, s)
	if s.Registry != nil {
		for _, name := range choose.ReservedPeerings(s.Registry) {
			if s.Peerings[name] == nil {
				s.Peerings[name] = nil
			}
		}
	}
	return nil
}

// sightings returns when each report of a gateway was first read.
func sightings(earlier map[records.GatewayID]*records.Status, s *observe.Snapshot) map[records.GatewayID]observe.Sighting {
	all, now := make(map[records.GatewayID]observe.Sighting), time.Now()
	for id, report := range s.Statuses {
		switch before := earlier[id]; {
		case before != nil && before.Time.Equal(report.Time):
			all[id] = s.Sightings[id]
		default:
			all[id] = observe.Sighting{Since: now, Successor: before != nil}
		}
	}
	return all
}

// decode decodes the record in a ConfigMap, and returns what adds it to a snapshot; nil if it is none, or not written
// yet.
func decode(object *corev1.ConfigMap, id records.Identity) (add func(*observe.Snapshot), err error) {
	gateway := records.GatewayID{Peering: id.Peering, Number: id.Gateway}
	switch id.Component {
	case records.ComponentFabric:
		return decodeInto(object, func(s *observe.Snapshot, f *records.Fabric) { s.Fabric = f })
	case records.ComponentPeering:
		return decodeInto(object, func(s *observe.Snapshot, p *records.Peering) { s.Peerings[id.Peering] = p })
	case records.ComponentIPAM:
		registry, err := store.Decode(object.Data[records.DataKey])
		return func(s *observe.Snapshot) { s.Registry = registry }, err
	}
	if _, written := object.Data[records.DataKey]; !written && id.CheckLabels(object.Labels) == nil {
		return nil, nil
	}
	switch id.Component {
	case records.ComponentGateway:
		return decodeInto(object, func(s *observe.Snapshot, g *records.Gateway) { s.Places[gateway] = g })
	case records.ComponentStatus:
		return decodeInto(object, func(s *observe.Snapshot, g *records.Status) { s.Statuses[gateway] = g })
	}
	return nil, nil
}

func decodeInto[T records.Document](object *corev1.ConfigMap, add func(*observe.Snapshot, *T)) (func(*observe.Snapshot), error) {
	record, err := records.Read[T](object.Name, object.Labels, object.Data)
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return func(s *observe.Snapshot) { add(s, &record) }, err
}

func (r reader) leases(ctx context.Context) (err error) {
	if r.Leases, err = inventory.Leases(ctx, r.cluster); err != nil {
		return err
	}
	r.DamagedReports = ""
	if r.Reports, err = inventory.Reports(r.Leases); err != nil {
		r.DamagedReports = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return nil
}

func (r reader) nodes(ctx context.Context) error {
	all, err := kube.All[*corev1.Node](ctx, r.cluster, "")
	r.Nodes = slices.DeleteFunc(all, func(n *corev1.Node) bool { return !discover.RunsHelpers(n) })
	return err
}

// pods reads all pods of the namespace, and why others were not created. Without permission to read events, the latter
// is not known.
func (r reader) pods(ctx context.Context) (err error) {
	if r.Pods, err = kube.All[*corev1.Pod](ctx, r.cluster, ""); err != nil {
		return err
	}
	if r.Refused, err = r.cluster.Refusals(ctx); apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// objects reads the objects of an installation except records and keys.
func (r reader) objects(ctx context.Context) error {
	kinds := []kube.Object{
		&appsv1.Deployment{}, &appsv1.DaemonSet{}, &corev1.Service{}, &corev1.ServiceAccount{}, &corev1.ResourceQuota{},
		&rbacv1.Role{}, &rbacv1.RoleBinding{}, &policyv1.PodDisruptionBudget{}, &networkingv1.Ingress{},
	}
	wide, err := inventory.ClusterWide(r.Namespace)
	if err == nil {
		r.Objects, err = r.cluster.ReadLive(ctx, kinds, wide)
	}
	return err
}

// keys reads the keys of all gateways; private and preshared ones are forgotten at once. Gateways mount Secrets by
// name, so labels decide nothing. The permission is asked for first, as audit logs have refused requests for Secrets.
func (r reader) keys(ctx context.Context) error {
	list := []kube.Permission{{Verb: "list", Resource: "secrets", Namespace: r.Namespace}}
	if err := r.cluster.CheckPermissions(ctx, list); err != nil {
		return err
	}
	all, err := kube.All[*corev1.Secret](ctx, r.cluster, "")
	if err != nil {
		return err
	}
	r.Keys = make(map[string]observe.Key)
	for _, secret := range all {
		key := observe.Key{Peering: secret.Labels[records.LabelPeering]}
		switch keys, err := inventory.DecodeKeys(secret); {
		case err != nil:
			key.Err = err
		default:
			key.Driver, key.Preshared = keys.Driver(), inventory.PresharedID(keys.Preshared)
		}
		r.Keys[secret.Name] = key
	}
	return nil
}

// platform reads the ranges of the cluster. Ranges that it does not find are no error: flags can replace them.
func (r reader) platform(ctx context.Context) (err error) {
	r.Platform, err = discover.Read(ctx, r.cluster, discover.Overrides{})
	if _, missing := errors.AsType[*discover.MissingError](err); missing {
		return nil
	}
	return err
}

func (r reader) servers(ctx context.Context) (err error) {
	r.Servers, err = discover.APIServers(ctx, r.cluster)
	return err
}

func (r reader) policies(ctx context.Context) error {
	list, err := r.cluster.Kube.NetworkingV1().NetworkPolicies(r.Namespace).List(ctx, metav1.ListOptions{})
	if err == nil {
		r.Policies = list.Items
	}
	return err
}
