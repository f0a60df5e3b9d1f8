package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/audit"
)

// rights are the rights of helpers and users, and their uses in all tests.
var rights ledger

// ledger counts how often the rights of each role were used.
type ledger struct {
	mu   sync.Mutex
	uses map[string]map[audit.Right]int // by role
}

// accounts, in people's namespace, have the roles of users; helpers' are in liqonet's.
const people = "people"

// collect reads the audit logs of a lab.
func (g *ledger) collect(ctx context.Context, l *lab.Lab) error {
	status, err := l.Status(ctx)
	if err != nil {
		return err
	}
	for _, c := range status.Clusters {
		var log audit.Log
		if err := log.Read(l.AuditLog(c.Name)); err != nil {
			return err
		}
		g.add(&log)
	}
	return nil
}

func (g *ledger) add(log *audit.Log) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, user := range log.Users() {
		role, peer := roleOf(user)
		if role == "" {
			continue
		}
		if g.uses == nil {
			g.uses = make(map[string]map[audit.Right]int)
		}
		if g.uses[role] == nil {
			g.uses[role] = make(map[audit.Right]int)
		}
		for _, r := range log.Rights(user) {
			uses := log.Uses(user, r)
			if peer != "" {
				r.Name = strings.Replace(r.Name, "-"+peer, "-PEER", 1)
			}
			g.uses[role][r] += uses
		}
	}
}

// roleOf names the role of an account of liqonet's, "" for others. All gateways have the same one, but for their
// peer's name.
func roleOf(user string) (role, peer string) {
	if account, ok := strings.CutPrefix(user, "system:serviceaccount:"+people+":"); ok {
		return account, ""
	}
	account, ok := strings.CutPrefix(user, "system:serviceaccount:liqonet:")
	if !ok {
		return "", ""
	}
	if of, peer, found := strings.Cut(account, "-"); found && strings.HasPrefix(of, "gateway") {
		return "gateway", peer
	}
	return account, ""
}

// levels are the roles of users; each includes those before it. gives are the helpers' roles that they create: an API
// server lets users grant only rights that they have.
var (
	levels = []string{"view", "operate", "administer"}
	gives  = map[string][]string{"operate": {"gateway"}, "administer": {"gateway", "node"}}
)

// exception is a right that no test uses, with the reason why it is needed.
type exception struct {
	role           string // "" is any
	verb, resource string // with its group, and wide if the right is cluster-wide
	why            string
}

// wide follows the resource of a cluster-wide right.
const wide = ", cluster-wide"

// Reasons of exceptions.
const (
	noStream = "API servers before Kubernetes 1.34 may not stream what is there with a watch: it is listed first"
	noPods   = "tells why there is no pod, where pods are missing"
	calico   = "discovery where the CNI is Calico"
	cilium   = "discovery where the CNI is Cilium"
)

// exceptions are reviewed: an exception that a test uses, or that no role has, fails the tests, too.
var exceptions = []exception{
	{"", "list", "events", noPods},
	{"node", "list", "nodes" + wide, noStream},
	{"node", "list", "pods" + wide, noStream},
	{"gateway", "list", "configmaps", noStream},
	{"gateway", "list", "leases.coordination.k8s.io", noStream},
	{"administer", "get", "leases.coordination.k8s.io" + wide, "an API server asks for it when the policy is made that compares Leases, which no log has"},
	{"administer", "create", "pods/exec", "API servers since Kubernetes 1.35 ask for it beside get"},
	{"", "list", "ippools.crd.projectcalico.org" + wide, calico},
	{"", "list", "felixconfigurations.crd.projectcalico.org" + wide, calico},
	{"", "list", "ippools.projectcalico.org" + wide, calico},
	{"", "list", "felixconfigurations.projectcalico.org" + wide, calico},
	{"", "list", "ciliumnodes.cilium.io" + wide, cilium},
	{"", "list", "ciliumpodippools.cilium.io" + wide, cilium},
	{"", "list", "networks.operator.openshift.io" + wide, "discovery on OpenShift"},
}

// installed are the objects outside its namespace that liqonet consists of: the only ones that are written there.
var installed = []string{
	"liqonet", "liqonet:liqonet:node", "liqonet.liqonet.claims", "liqonet.liqonet.gateways", "liqonet.liqonet.ingresses",
	"liqonet.liqonet.leases", "liqonet.liqonet.pods", "liqonet.liqonet.records", "liqonet.liqonet.services",
}

// judge returns what is wrong with the roles. Unused rights are known only after all tests in their long form.
func (g *ledger) judge(all bool) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []string
	say := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, role := range append([]string{"node", "gateway"}, levels...) {
		if len(g.uses[role]) == 0 {
			say("no test has used role %s", role)
		}
	}
	excused, used := make(map[exception]bool), make(map[exception]bool)
	for role, uses := range g.uses {
		for r := range uses {
			switch e, ok := excuse(role, r); {
			case r.Wild():
				say("role %s: %s: it has no bounds", role, r)
			case r.Writes() && r.Namespace == "" && !slices.Contains(installed, r.Name):
				say("role %s: %s: it is cluster-wide", role, r)
			case r.Resource == "secrets" && r.Namespace == "":
				say("role %s: %s: keys of everybody", role, r)
			case g.needed(role, r):
				used[e] = ok
			case ok:
				excused[e] = true
			case all:
				say("role %s: %s: it is not used", role, r)
			}
		}
	}
	for _, e := range exceptions {
		switch {
		case !all:
		case (e.why == noStream || e.why == noPods) && used[e]: // sometimes a stream breaks off, or a pod is late
		case !excused[e] || used[e] && e.role != "":
			say("role %s: %s %s: excused without need", e.role, e.verb, e.resource)
		}
	}
	slices.Sort(found)
	return found
}

// needed reports whether a right was used: by the role, by a lower role that it includes, or by a role that it creates.
func (g *ledger) needed(role string, r audit.Right) bool {
	roles := append([]string{role}, gives[role]...)
	if i := slices.Index(levels, role); i > 0 {
		roles = append(roles, levels[:i]...)
	}
	return slices.ContainsFunc(roles, func(other string) bool {
		for has, uses := range g.uses[other] {
			// Who makes gateways does not know their names beforehand.
			if uses > 0 && has.Verb == r.Verb && has.Group == r.Group && has.Resource == r.Resource && has.Namespace == r.Namespace &&
				(r.Name == "" || has.Name == r.Name) {
				return true
			}
		}
		return false
	})
}

func excuse(role string, r audit.Right) (exception, bool) {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Namespace == "" {
		resource += wide
	}
	i := slices.IndexFunc(exceptions, func(e exception) bool {
		return (e.role == "" || e.role == role) && e.verb == r.Verb && e.resource == resource
	})
	if i < 0 {
		return exception{}, false
	}
	return exceptions[i], true
}

// table lists rights and how often they were used.
func (g *ledger) table() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, role := range slices.Sorted(maps.Keys(g.uses)) {
		for _, r := range slices.SortedFunc(maps.Keys(g.uses[role]), func(a, b audit.Right) int {
			return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Resource, b.Resource), strings.Compare(a.String(), b.String()))
		}) {
			fmt.Fprintf(w, "%s\t%s\t%d\n", role, r, g.uses[role][r])
		}
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}
