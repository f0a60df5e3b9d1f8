package inventory

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/records"
)

// keptName is the number of characters that a name keeps which would be longer than records.MaxName. It gets six digits
// of a hash.
const keptName = 33

// contextForm is a form of kube contexts. Its group "name" is the cluster's name.
type contextForm struct {
	pattern *regexp.Regexp
	longer  string // the longer name, made of the groups; "": there is none
}

// contextForms are known forms of kube contexts, in order of precedence. None of their names has the number of an
// account.
var contextForms = []contextForm{
	// aws eks update-kubeconfig
	{regexp.MustCompile(`^(?:[^@]*@)?arn:aws[a-z-]*:eks:(?<region>[^:]+):\d+:cluster/(?<name>.+)$`), "${region}-${name}"},
	// eksctl
	{regexp.MustCompile(`^[^@]+@(?<name>[^.]+)\.(?<region>[^.]+)\.eksctl\.io$`), "${name}-${region}"},
	// gcloud
	{regexp.MustCompile(`^gke_[^_]+_(?<region>[^_]+)_(?<name>[^_]+)$`), "${region}-${name}"},
	// kubeadm
	{regexp.MustCompile(`^(?<name>[^@]+@(kubernetes|default|cluster|local))$`), ""},
	// The kubectl documentation's USER@CLUSTER
	{regexp.MustCompile(`^(?<user>[^@]+)@(?<name>[^@]+)$`), "${user}-${name}"},
	// oc login: PROJECT/HOST:PORT/USER
	{regexp.MustCompile(`^(?<project>[^/]*)/(?<name>[^/:]+)(:\d+)?/(?<user>[^/]*)$`), "${project}-${name}-${user}"},
}

// NamesFromContext derives a cluster's name from its kube context, such as "prod" from "admin@prod", and a longer one
// for the case that another cluster has the name; "": there is none. entry is the name of the cluster in the
// kubeconfig; "" if it is not known.
func NamesFromContext(context, entry string) (name, longer string) {
	if entry != "" && context == entry+"-admin" { // az aks get-credentials --admin
		return label(entry), label(context)
	}
	for _, form := range contextForms {
		if !form.pattern.MatchString(context) {
			continue
		}
		short, long := label(form.pattern.ReplaceAllString(context, "${name}")), label(form.pattern.ReplaceAllString(context, form.longer))
		if form.longer == "" || long == short {
			long = ""
		}
		return short, long
	}
	return label(context), ""
}

// notInLabels are the texts that names cannot have.
var notInLabels = regexp.MustCompile(`[^a-z0-9]+`)

// label makes a text a valid name.
func label(text string) string {
	name := strings.Trim(notInLabels.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if name == "" {
		return "cluster"
	}
	if len(name) > records.MaxName {
		sum := sha256.Sum256([]byte(name))
		name = strings.TrimRight(name[:keptName], "-") + "-" + hex.EncodeToString(sum[:3])
	}
	return name
}

// ChooseName returns the name of a cluster, and a longer one for the case that a peer has the same name; "": there is
// none. A cluster with peerings keeps its name, because its peers use it.
func ChooseName(c *kube.Cluster, requested string, fabric *records.Fabric, peered bool) (name, longer string, err error) {
	short, long := NamesFromContext(c.Context, c.Entry)
	switch {
	case requested != "" && fabric != nil && peered && requested != fabric.Name:
		return "", "", hint.With(
			fmt.Errorf("cluster %q already has the name %q, not %q", c.Context, fabric.Name, requested),
			"leave the name out, or begin anew: liqoctl network reset --context "+kube.ShellWord(c.Context))
	case requested != "":
		return requested, "", records.ValidateName(requested)
	case fabric == nil:
		return short, long, nil
	case !peered && fabric.Name == short:
		return fabric.Name, long, nil
	}
	return fabric.Name, "", nil
}
