package peering

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/inventory"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/kube/discover"
	"liqonet.io/liqonet/internal/peering/plan"
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// site is one cluster of an operation: its observed and its desired state.
type site struct {
	cluster  *kube.Cluster
	side     Side // the user's options for it
	options  Installation
	reporter progress.Reporter

	id   string
	name string
	// longerName is for the case that the peer has the same name; "": the name cannot change.
	longerName string
	discovery  discover.Discovery
	nodes      *roster // those that the operation needs
	// unverified are the nodes that were not verified; known at the end.
	unverified []UnverifiedNode
	observed   observed
	own        choose.Own
	fabric     records.Fabric // desired; overlay and MTU are known once the nodes have reported

	// connecting means that an existing installation is sufficient. usableDigest is the digest of an installation that
	// the user may use but not change; "": the user may change it.
	connecting   bool
	usableDigest string
	// installed means that the same run has checked the rights, and applied or planned the installation.
	installed  bool
	compared   bool // the same run has compared the installation before its first write
	installing bool // this run creates the installation
	assumedMTU int  // of packets between pods, in bytes, used until nodes report; 0: none
	changes    []kube.Change
}

// observed is the state of liqonet in a cluster before the operation changes it.
type observed struct {
	fabric   *records.Fabric // nil: liqonet is not installed
	peerings []records.Peering
	reports  []records.Node
	// inUse are addresses in use around the cluster, as reported by its nodes. unread describes nodes whose addresses
	// in use are not, or not completely, known.
	inUse  choose.Uses
	unread []string
	// servers are the addresses of the cluster's API servers.
	servers []netip.Addr
	// pods are the installation's settings for its pods.
	pods templates.Pods
	// registry is a copy, on which the operation tries its reservations.
	registry *ipam.Registry
}

// newSite returns the site of a new operation.
func newSite(side Side, o Installation, r progress.Reporter) site {
	return site{cluster: side.Cluster, side: side, options: o, nodes: &roster{strict: o.AllNodes}, reporter: r}
}

// reach checks that the cluster is reachable and that the user has the required permissions, and reads the cluster's
// ID.
func (s *site) reach(ctx context.Context) error {
	if err := s.cluster.Reach(ctx); err != nil {
		return err
	}
	younger, err := inventory.CheckElsewhere(ctx, s.cluster)
	if err != nil {
		return err
	}
	for _, namespace := range younger { // these do not affect the cluster's first installation
		s.reporter.Warn(fmt.Sprintf("cluster %q: a second installation in namespace %s cannot work", s.cluster.Context, namespace),
			fmt.Sprintf("liqoctl network reset -n %s --context %s", namespace, kube.ShellWord(s.cluster.Context)))
	}
	// This is first, so that the error lists all missing permissions.
	if !s.installed {
		if err := s.checkInstaller(ctx); err != nil {
			return err
		}
	}
	if err := s.chooseImage(ctx); err != nil {
		return err
	}
	s.id, err = s.cluster.ID(ctx)
	return err
}

// chooseImage chooses the image of the installation if the user names none and this build has none.
func (s *site) chooseImage(ctx context.Context) (err error) {
	if s.options.Image != "" || s.options.NoImage == nil {
		return nil // a rotation chooses that of the gateways
	}
	if s.options.Image, err = inventory.InstalledImage(ctx, s.cluster); err == nil && s.options.Image == "" {
		err = s.options.NoImage
	}
	return err
}

// discover reads the configuration of the cluster, and the state of liqonet in it.
func (s *site) discover(ctx context.Context) error {
	if err := inventory.AwaitNamespace(ctx, s.cluster, s.side.Overrides.FlagPrefix); err != nil {
		return err
	}
	var leases []*coordinationv1.Lease
	group, ctx := errgroup.WithContext(ctx)
	inventory.ReadInto(ctx, group, s.cluster, &s.observed.fabric, inventory.Fabric)
	// A planned record is incomplete: what a shared dry run has planned before is known by its reservations.
	inventory.ReadInto(ctx, group, s.cluster.Live(), &s.observed.peerings, inventory.Peerings)
	inventory.ReadInto(ctx, group, s.cluster, &s.observed.pods, inventory.PodSettings)
	inventory.ReadInto(ctx, group, s.cluster, &s.observed.registry, inventory.Reservations)
	inventory.ReadInto(ctx, group, s.cluster, &leases, inventory.Leases)
	group.Go(func() (err error) {
		s.discovery, err = discover.Read(ctx, s.cluster, s.side.Overrides)
		return err
	})
	group.Go(func() (err error) {
		s.observed.servers, err = discover.APIServers(ctx, s.cluster)
		if apierrors.IsForbidden(err) {
			s.reporter.Note(fmt.Sprintf("cluster %q: not allowed to read the API server's addresses: reserve them with --%sreserve if peers could be remapped to them",
				s.cluster.Context, s.side.Overrides.FlagPrefix))
			return nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	if err := s.updateReports(leases); err != nil {
		return err
	}
	s.nodes.set(s.discovery.Nodes)
	s.reportDiscovery()
	return s.plan()
}

// updateReports decodes the nodes' reports.
func (s *site) updateReports(leases []*coordinationv1.Lease) (err error) {
	s.observed.reports, err = inventory.Reports(leases)
	s.observed.inUse, s.observed.unread = choose.ReportedUses(s.observed.reports)
	return err
}

// reportDiscovery reports the notes and warnings of discovery, without conflicts that break connections.
func (s *site) reportDiscovery() {
	for _, note := range s.discovery.Notes {
		s.reporter.Note(fmt.Sprintf("cluster %q: %s", s.cluster.Context, note))
	}
	for _, warning := range s.discovery.Warnings {
		if !warning.Breaks {
			s.reporter.Warn(fmt.Sprintf("cluster %q: %s", s.cluster.Context, warning.What), warning.Hint)
		}
	}
}

// checkConflicts reports what in the cluster is incompatible with liqonet: as an error if asError is set, else as a
// warning.
func (s *site) checkConflicts(asError bool) error {
	var what, hints []string
	for _, warning := range s.discovery.Warnings {
		if warning.Breaks {
			what, hints = append(what, warning.What), append(hints, warning.Hint)
		}
	}
	if len(what) == 0 {
		return nil
	}
	if asError {
		hints = append(hints, "or continue with --skip-validation")
	}
	return s.failOrWarn(asError, strings.Join(what, "; "), strings.Join(hints, "; "))
}

// failOrWarn reports an incompatibility: as an error if asError is set, else as a warning.
func (s *site) failOrWarn(asError bool, what, advice string) error {
	what = fmt.Sprintf("cluster %q: %s", s.cluster.Context, what)
	if asError {
		return hint.With(errors.New(what), advice)
	}
	s.reporter.Warn(what, advice)
	return nil
}

// plan decides name, ranges and fabric. It does no I/O.
func (s *site) plan() error {
	if len(s.nodes.allReady()) == 0 {
		return hint.With(fmt.Errorf("cluster %q: no node is Ready", s.cluster.Context),
			fmt.Sprintf("kubectl --context %s get nodes", kube.ShellWord(s.cluster.Context)))
	}
	if err := s.checkClusterID(); err != nil {
		return err
	}
	var err error
	if s.name, s.longerName, err = inventory.ChooseName(s.cluster, s.side.Name, s.observed.fabric, len(s.observed.peerings) > 0 || len(choose.ReservedPeerings(s.observed.registry)) > 0); err != nil {
		return err
	}
	choose.Restore(s.observed.registry, s.observed.fabric, s.observed.peerings)
	s.own = choose.Own{Ranges: inventory.DesiredRanges(s.discovery, s.side.Overrides, s.observed.fabric)}
	s.own.Pools = s.side.Pools
	s.own.Reserved, s.own.External, s.own.Internal = s.side.Reserved, s.side.ExternalCIDR, s.side.InternalCIDR
	s.own.InUse, _ = s.inUse()
	if s.own.External, s.own.Internal, err = choose.ReserveOwn(s.observed.registry, s.own); err != nil {
		return inventory.ExplainAddresses(s.cluster.Context, err)
	}
	s.fabric, s.installing = s.desiredFabric(), s.observed.fabric == nil && s.usableDigest == ""
	return nil
}

// base renders the objects of the installation.
func (s *site) base() ([]kube.Object, error) {
	return templates.Base(templates.BaseValues{
		Namespace: s.cluster.Namespace, Image: s.options.Image, Pods: s.pods(), Policies: s.discovery.AdmissionPolicies,
	})
}

// mayChange reports whether existing configuration may be changed: with --update, and in a dry run, which lists what
// --update would change.
func (s *site) mayChange() bool { return s.options.Update || s.cluster.IsDryRun() }

// apply applies objects and records the changes. Without Update, objects that were compared and have no differences are
// only completed: another writer may have changed them since, on purpose.
func (s *site) apply(ctx context.Context, compared bool, objects ...kube.Object) error {
	put := s.cluster.Apply
	if compared && !s.mayChange() {
		put = s.cluster.Complete
	}
	changes, err := put(ctx, objects...)
	s.recordChanges(changes...)
	return err
}

// remove deletes objects and records the changes.
func (s *site) remove(ctx context.Context, objects ...kube.Object) error {
	changes, err := s.cluster.Delete(ctx, objects...)
	s.recordChanges(changes...)
	return err
}

// recordChanges records changes.
func (s *site) recordChanges(changes ...kube.Change) {
	s.changes = append(s.changes, progress.Altering(changes)...)
}

// summary describes the site after discovery.
func (s *site) summary() string {
	text := fmt.Sprintf("%s: pods %s (%s), services %s (%s), %s", s.name,
		plan.Joined(s.discovery.PodCIDRs.Prefixes, netip.Prefix.String), s.discovery.PodCIDRs.Source,
		plan.Joined(s.discovery.ServiceCIDRs.Prefixes, netip.Prefix.String), s.discovery.ServiceCIDRs.Source, plan.Count(len(s.discovery.Nodes), "node"))
	if s.discovery.CNI != "" {
		text += ", " + s.discovery.CNI
	}
	return text
}

// pods returns the settings for liqonet's pods: those of this run's options, else those of the installation.
func (s *site) pods() templates.Pods { return setting.Over(s.options.Pods, s.observed.pods) }
