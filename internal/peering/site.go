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
	"liqonet.io/liqonet/internal/progress"
	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/ipam"
	"liqonet.io/liqonet/ipam/choose"
	"liqonet.io/liqonet/templates"
)

// site is one cluster in an operation: what was found there and what it should become.
type site struct {
	cluster  *kube.Cluster
	side     Side // what the user says of it
	options  Installation
	reporter progress.Reporter

	id        string
	name      string
	discovery discover.Discovery
	nodes     *roster // those that have to take part
	// unverified are those that do not; it is known at the end.
	unverified []UnverifiedNode
	found      found
	own        choose.Own
	fabric     records.Fabric // as it should be; overlay and MTU are known once the nodes have reported
	// unreserved are the differences between what the user wants reserved and what is.
	unreserved []string

	// connecting says that an installation which stands will do; standing is the digest of the one that the user
	// may use, but not change, "" where he may.
	connecting bool
	standing   string
	installing bool // there was no installation: this run writes one
	assumedMTU int  // of packets between pods, in bytes, until nodes report; 0: none
	update     bool // the user's word, also in the dry run of a comparison, in which options.Update is set
	changes    []kube.Change
}

// found is what liqonet has in a cluster before the operation changes anything.
type found struct {
	fabric   *records.Fabric // nil: liqonet is not installed
	peerings []records.Peering
	reports  []records.Node
	// inUse is what nodes report to be in use around the cluster. unread are nodes of which that is not known, or not
	// all.
	inUse  choose.Uses
	unread []string
	// servers are the addresses of the cluster's API servers.
	servers []netip.Addr
	// pods are the settings of the installation for its pods.
	pods templates.Pods
	// registry is a copy on which the operation tries its reservations.
	registry *ipam.Registry
}

// newSite is the site of an operation that begins.
func newSite(side Side, o Installation, r progress.Reporter) site {
	return site{cluster: side.Cluster, side: side, options: o, nodes: &roster{strict: o.AllNodes}, update: o.Update, reporter: r}
}

// reach finds out whether the cluster answers, which one it is and whether the user may do what is to be done.
func (s *site) reach(ctx context.Context) error {
	if err := s.cluster.Reach(ctx); err != nil {
		return err
	}
	younger, err := inventory.CheckElsewhere(ctx, s.cluster)
	if err != nil {
		return err
	}
	warnOfYounger(s.cluster, younger, s.reporter)
	// First: what is missing is told all at once.
	if !s.options.SkipValidation {
		if err := s.checkInstaller(ctx); err != nil {
			return err
		}
	}
	s.id, err = s.cluster.ID(ctx)
	return err
}

// discover reads the cluster: what it is, and what liqonet has there.
func (s *site) discover(ctx context.Context) error {
	if err := inventory.AwaitNamespace(ctx, s.cluster, s.side.Overrides.FlagPrefix); err != nil {
		return err
	}
	var leases []*coordinationv1.Lease
	group, ctx := errgroup.WithContext(ctx)
	inventory.ReadInto(ctx, group, s.cluster, &s.found.fabric, inventory.Fabric)
	inventory.ReadInto(ctx, group, s.cluster, &s.found.peerings, inventory.Peerings)
	inventory.ReadInto(ctx, group, s.cluster, &s.found.pods, inventory.PodSettings)
	inventory.ReadInto(ctx, group, s.cluster, &s.found.registry, inventory.Reservations)
	inventory.ReadInto(ctx, group, s.cluster, &leases, inventory.Leases)
	group.Go(func() (err error) {
		s.discovery, err = discover.Read(ctx, s.cluster, s.side.Overrides)
		return err
	})
	group.Go(func() (err error) {
		s.found.servers, err = discover.APIServers(ctx, s.cluster)
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
	if err := s.takeReports(leases); err != nil {
		return err
	}
	s.nodes.set(s.discovery.Nodes)
	s.tell()
	return s.plan()
}

// takeReports reads what nodes report.
func (s *site) takeReports(leases []*coordinationv1.Lease) (err error) {
	s.found.reports, err = inventory.Reports(leases)
	s.found.inUse, s.found.unread = choose.ReportedUses(s.found.reports)
	return err
}

// tell passes on what discovery remarked, but for clashes that break something.
func (s *site) tell() {
	for _, note := range s.discovery.Notes {
		s.reporter.Note(fmt.Sprintf("cluster %q: %s", s.cluster.Context, note))
	}
	for _, warning := range s.discovery.Warnings {
		if !warning.Breaks {
			s.reporter.Warn(fmt.Sprintf("cluster %q: %s", s.cluster.Context, warning.What), warning.Hint)
		}
	}
}

// checkClashes tells of what in the cluster cannot work beside liqonet. It is an error if refuse is set, else a
// warning.
func (s *site) checkClashes(refuse bool) error {
	var what, hints []string
	for _, warning := range s.discovery.Warnings {
		if warning.Breaks {
			what, hints = append(what, warning.What), append(hints, warning.Hint)
		}
	}
	if len(what) == 0 {
		return nil
	}
	if refuse {
		hints = append(hints, "or continue with --skip-validation")
	}
	return s.object(refuse, strings.Join(what, "; "), strings.Join(hints, "; "))
}

// object tells of what cannot work: as an error if refuse is set, else as a warning.
func (s *site) object(refuse bool, what, advice string) error {
	what = fmt.Sprintf("cluster %q: %s", s.cluster.Context, what)
	if refuse {
		return hint.With(errors.New(what), advice)
	}
	s.reporter.Warn(what, advice)
	return nil
}

// plan decides name, ranges and fabric. It does no I/O.
func (s *site) plan() error {
	if len(s.nodes.all()) == 0 {
		return hint.With(fmt.Errorf("cluster %q: no node is Ready", s.cluster.Context),
			fmt.Sprintf("kubectl --context %s get nodes", kube.ShellWord(s.cluster.Context)))
	}
	if err := s.checkCopied(); err != nil {
		return err
	}
	var err error
	if s.name, err = inventory.ChooseName(s.cluster, s.side.Name, s.found.fabric); err != nil {
		return err
	}
	choose.Restore(s.found.registry, s.found.fabric, s.found.peerings)
	s.unreserved = s.newReservations()
	s.own = choose.Own{Ranges: inventory.DesiredRanges(s.discovery, s.side.Overrides, s.found.fabric)}
	s.own.Pools = s.side.Pools
	s.own.Reserved, s.own.External, s.own.Internal = s.side.Reserved, s.side.ExternalCIDR, s.side.InternalCIDR
	s.own.InUse, _ = s.inUse()
	if s.own.External, s.own.Internal, err = choose.ReserveOwn(s.found.registry, s.own); err != nil {
		return inventory.ExplainAddresses(s.cluster.Context, err)
	}
	s.fabric, s.installing = s.wantedFabric(), s.found.fabric == nil && s.standing == ""
	return nil
}

// base renders the objects of the installation.
func (s *site) base() ([]kube.Object, error) {
	return templates.Base(templates.BaseValues{
		Namespace: s.cluster.Namespace, Image: s.options.Image, Pods: s.pods(), Policies: s.discovery.AdmissionPolicies,
	})
}

// apply applies objects and keeps account of what changed. Those that were compared, and have no differences, are only
// completed without Update: what has become different since is what somebody else wants.
func (s *site) apply(ctx context.Context, compared bool, objects ...kube.Object) error {
	put := s.cluster.Apply
	if compared && !s.options.Update {
		put = s.cluster.Complete
	}
	changes, err := put(ctx, objects...)
	s.note(changes...)
	return err
}

// remove deletes an object and keeps account of that.
func (s *site) remove(ctx context.Context, objects ...kube.Object) error {
	changes, err := s.cluster.Delete(ctx, objects...)
	s.note(changes...)
	return err
}

// note keeps account of changes.
func (s *site) note(changes ...kube.Change) {
	s.changes = append(s.changes, progress.Altering(changes)...)
}

// described is the site in a few words, once it is discovered.
func (s *site) described() string {
	text := fmt.Sprintf("%s: pods %s (%s), services %s (%s), %d nodes", s.name,
		joined(s.discovery.PodCIDRs.Prefixes), s.discovery.PodCIDRs.Source,
		joined(s.discovery.ServiceCIDRs.Prefixes), s.discovery.ServiceCIDRs.Source, len(s.discovery.Nodes))
	if s.discovery.CNI != "" {
		text += ", " + s.discovery.CNI
	}
	return text
}

// joined lists values as text.
func joined[T fmt.Stringer](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
	}
	return strings.Join(words, ", ")
}

// warnOfYounger tells of installations beside which the one in use goes on.
func warnOfYounger(c *kube.Cluster, younger []string, r progress.Reporter) {
	for _, namespace := range younger {
		r.Warn(fmt.Sprintf("cluster %q: a second installation in namespace %s cannot work", c.Context, namespace),
			fmt.Sprintf("liqoctl network reset -n %s --context %s", namespace, kube.ShellWord(c.Context)))
	}
}

// pods are the settings for the pods of liqonet: what this run asks for, else what the installation has.
func (s *site) pods() templates.Pods { return s.options.Pods.Over(s.found.pods) }
