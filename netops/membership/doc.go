// Package membership decides what nodes and gateways do when something answers, falls silent or announces its end:
// which of several members carry packets (Member, Unused), when the session of a tunnel is renewed (Renewal), which of
// two pods with one key counts (Pods), when a gateway may end (Leaving), and which nodes report a silent one
// (Witnesses). It is pure: the caller passes the time and guards the values by a lock; it knows no sockets, no kernel
// and no Kubernetes. docs/contributing/gateways.md draws it.
package membership
