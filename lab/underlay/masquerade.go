package underlay

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	"liqonet.io/liqonet/lab/netns"
	"liqonet.io/liqonet/lab/spec"
)

//go:embed masquerade
var masqueradeFiles embed.FS

var masqueradeRules = template.Must(template.ParseFS(masqueradeFiles, "masquerade/*"))

// masqueraders are what makes each style's rules: a template of theirs, and the program that reads it.
var masqueraders = map[spec.Masquerade]struct {
	file    string
	command []string
}{
	spec.MasqueradeNft:      {"nft", []string{"nft", "-f", "-"}},
	spec.MasqueradeIptables: {"iptables", []string{"iptables-nft-restore", "--noflush"}},
}

// Masquerade makes what pods of the nth node, from 1, send to other networks leave with the node's address, in
// the cluster's style.
func (m Member) Masquerade(c spec.Cluster, n int) error {
	by, ok := masqueraders[c.Masquerade]
	if !ok {
		return nil
	}
	values := map[string]any{"Pods": c.PodCIDR, "Own": c.NodePodCIDR(n), "Pool": c.PodAddresses == spec.Pool}
	return feed(m.Namespace, by.file, values, by.command...)
}

// feed runs a program in a namespace with a template of masqueradeFiles as its input.
func feed(ns *netns.Namespace, file string, values any, command ...string) error {
	var rules bytes.Buffer
	if err := masqueradeRules.ExecuteTemplate(&rules, file, values); err != nil {
		return fmt.Errorf("render rules %s: %w", file, err)
	}
	_, err := execute(ns, rules.String(), command...)
	return err
}
