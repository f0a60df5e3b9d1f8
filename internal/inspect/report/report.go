// Package report collects the input of a fault report: objects, logs, status, diagnosis and versions of one or two
// clusters, in one archive without secrets. It changes nothing. Objects that the user may not read are omitted and
// listed in the archive.
package report

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/inspect/diagnose"
	"liqonet.io/liqonet/internal/inspect/status"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/observe"
	"liqonet.io/liqonet/internal/progress"
)

// Options are the options of Run.
type Options struct {
	Cluster *kube.Cluster
	Remote  *kube.Cluster  // nil: the local cluster alone
	Build   buildinfo.Info // of this liqoctl
	Timeout time.Duration  // of the whole run; 0: none
}

// Result describes an archive.
type Result struct {
	File   string   `json:"file"`  // to which it was written
	Files  int      `json:"files"` // in the archive
	Unread []string `json:"unread,omitempty"`

	archive archive
}

// Write writes the archive, a compressed tar file.
func (r Result) Write(w io.Writer) error { return r.archive.write(w) }

// collection is an archive in progress. Its methods may be called from any goroutine.
type collection struct {
	mu      sync.Mutex
	archive archive
	unread  []string
	scrub   scrubber
}

// part is the part of a collection from one cluster.
type part struct {
	*collection

	cluster *kube.Cluster
	folder  string
}

// Run collects all readable data. Only the end of the context is an error.
func Run(ctx context.Context, o Options, _ progress.Reporter) (Result, error) {
	ctx, cancel := progress.Within(ctx, o.Timeout)
	defer cancel()
	c := &collection{}
	parts := []part{{c, o.Cluster, "local"}}
	if o.Remote != nil {
		parts = append(parts, part{c, o.Remote, "remote"})
	}
	for _, p := range parts { // first, so that no file contains them
		p.readSecrets(ctx)
	}
	snapshots := make([]*observe.Snapshot, len(parts))
	var group sync.WaitGroup
	for i, p := range parts {
		group.Go(func() {
			snapshots[i] = diagnose.Read(ctx, p.cluster)
			p.collect(ctx, snapshots[i])
		})
	}
	group.Wait()
	result, err := diagnose.Of("", snapshots...)
	c.addJSON("diagnosis.json", "diagnosis", result, err)
	c.addJSON("version.json", "version", o.Build, nil)
	c.addReadme(parts)
	return Result{Files: len(c.archive), Unread: c.unread, archive: c.archive}, ctx.Err()
}

// collect adds all data of a cluster.
func (p part) collect(ctx context.Context, s *observe.Snapshot) {
	if err := s.Errors[observe.Server]; err != nil {
		p.missing("all", err)
		return
	}
	version, err := p.cluster.Kube.Discovery().ServerVersion()
	p.addJSON(p.folder+"/version.json", p.folder+": version", version, err)
	peerings, err := status.Of("", s)
	p.addJSON(p.folder+"/status.json", p.folder+": status", peerings, err)
	p.addObjects(ctx)
	p.addNodes(ctx)
	p.addEvents(ctx)
	p.addLogs(ctx)
}

// missing adds an entry to the unread data of the cluster.
func (p part) missing(what string, err error) { p.addUnread(p.folder+": "+what, err) }

func (c *collection) addUnread(what string, err error) {
	why := c.scrub.clean(what + ": " + kube.Unread(err).Error())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread = append(c.unread, why)
}

// add adds a file, without secrets.
func (c *collection) add(name, text string) {
	text = c.scrub.clean(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.archive = append(c.archive, file{name, text})
}

// addJSON adds a value, or the error if there is none.
func (c *collection) addJSON(name, what string, value any, err error) {
	text, encoding := json.MarshalIndent(value, "", "  ")
	if err := cmp.Or(err, encoding); err != nil {
		c.addUnread(what, err)
		return
	}
	c.add(name, string(text)+"\n")
}

// addReadme adds a file that describes the archive.
func (c *collection) addReadme(parts []part) {
	var b strings.Builder
	b.WriteString("A report of liqonet.\n\n")
	for _, p := range parts {
		fmt.Fprintf(&b, "%s/ is cluster %q, namespace %q\n", p.folder, p.cluster.Context, p.cluster.Namespace)
	}
	b.WriteString(`
diagnosis.json   network diagnose
version.json     liqoctl
*/status.json    network status
*/version.json   API server
*/objects/       objects of liqonet, nodes, events
*/logs/          logs of helpers and gateways; the line "kernel state" has links, routes, rules and nftables

Removed: data of Secrets, values of environment variables, annotations and ConfigMaps of others, keys, tokens, passwords.
A WireGuard key, public keys included, is replaced by the first characters of its SHA-256. The archive does have names and
addresses of nodes and pods: read it before you publish it.
`)
	for i, what := range c.unread {
		if i == 0 {
			b.WriteString("\nNot read:\n")
		}
		fmt.Fprintf(&b, "  %s\n", what)
	}
	c.add("README.txt", b.String())
}
