// Package audit reads API servers' audit logs: which requests a user was allowed to make, and which rights he
// has. The difference is the rights that are not needed.
//
// In scope are logs of the policy lab/cluster/config/audit.yaml. Groups and aggregated roles are not: only bindings
// to the user count.
package audit

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

// Log is the content of one or more API servers' audit logs.
type Log struct {
	uses     map[string]map[Right]int // by user
	roles    map[place][]rule
	bindings []binding
}

// place names a Role, or a ClusterRole, whose namespace is "". The path of its log identifies a cluster.
type place struct{ log, namespace, name string }

// event is the part of audit.k8s.io/v1 Event that matters.
type event struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestObject json.RawMessage   `json:"requestObject"`
	Annotations   map[string]string `json:"annotations"`
}

// decision is the annotation with the decision of the API server's authorizers.
const decision = "authorization.k8s.io/decision"

// longestLine bounds a line of the log, in bytes: objects have at most 1.5 MiB (etcd's limit).
const longestLine = 4 << 20

// Read adds the events of a log file.
func (l *Log) Read(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read audit log: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("read audit log %s: %w", path, err)
		}
		if e.Annotations[decision] != "allow" {
			continue
		}
		l.use(e)
		if err := l.learn(path, e); err != nil {
			return fmt.Errorf("read audit log %s: %s of %s %s: %w", path, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Name, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read audit log %s: %w", path, err)
	}
	return nil
}

// use records a request of a user.
func (l *Log) use(e event) {
	r := Right{
		Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
	}
	if r.Group == "" && r.Resource == "namespaces" {
		r.Namespace = "" // the audit event of a Namespace has its own name as its namespace
	}
	if e.ObjectRef.Subresource != "" {
		r.Resource += "/" + e.ObjectRef.Subresource
	}
	if l.uses == nil {
		l.uses = make(map[string]map[Right]int)
	}
	all := l.uses[e.User.Username]
	if all == nil {
		all = make(map[Right]int)
		l.uses[e.User.Username] = all
	}
	all[r]++
	// Server-side apply of an absent object needs both rights; the log has only one verb.
	if e.Verb == "patch" && e.ResponseStatus.Code == http.StatusCreated {
		r.Verb = "create"
		all[r]++
	}
}
