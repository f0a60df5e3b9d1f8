package commands

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/templates"
)

// roleFlags are the flags of `network role`.
type roleFlags struct {
	cluster  *clusterFlags
	subjects []string
	output   format
}

func newNetworkRole(env *Env, local *clusterFlags) *cobra.Command {
	f := roleFlags{cluster: local, output: formatYAML}
	levels := make([]string, 0, len(templates.Levels()))
	for _, l := range templates.Levels() {
		levels = append(levels, string(l))
	}
	cmd := &cobra.Command{
		Use:   "role " + strings.Join(levels, "|"),
		Short: "Print the RBAC roles of users of liqonet",
		Long: `Print the RBAC roles of users of liqonet, as manifests for an administrator of the cluster. The command connects to no
cluster. Each level includes the previous one:

  view        network status, diagnose, trace and report;
              ipam list, show and translate
  operate     network connect, disconnect and rotate-keys if liqonet is installed,
              expose and unexpose; ipam reserve, acquire and release
  administer  network init and reset, test and trace --live, and
              connect if liqonet is not installed yet

Only the level administer may write outside the namespace of liqonet, and only named objects.`,
		Example: `  # Let a pipeline connect a cluster in which liqonet is installed
  liqoctl network role operate --for serviceaccount:ci/deployer | kubectl apply -f -`,
		Args:              arguments("level (" + strings.Join(levels, ", ") + ")"),
		ValidArgsFunction: cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			v, err := f.values(args[0])
			if err != nil {
				return err
			}
			objects, err := templates.Access(v)
			if err != nil {
				return &UsageError{Err: err}
			}
			return f.print(env.Out, objects)
		},
	}
	cmd.Flags().StringArrayVar(&f.subjects, "for", nil,
		"`SUBJECT` to bind the roles to: user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME; may be repeated")
	outputFlag(cmd, &f.output)
	return cmd
}

func (f *roleFlags) values(level string) (templates.AccessValues, error) {
	v := templates.AccessValues{Namespace: f.cluster.config.Namespace, Level: templates.Level(level)}
	for _, text := range f.subjects {
		s, err := parseSubject(text)
		if err != nil {
			return v, err
		}
		v.Subjects = append(v.Subjects, s)
	}
	return v, nil
}

// parseSubject reads who gets a role.
func parseSubject(text string) (rbacv1.Subject, error) {
	kind, name, _ := strings.Cut(text, ":")
	if name != "" {
		switch kind {
		case "user":
			return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}, nil
		case "group":
			return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}, nil
		case "serviceaccount":
			if namespace, account, ok := strings.Cut(name, "/"); ok && namespace != "" && account != "" {
				return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}, nil
			}
		}
	}
	return rbacv1.Subject{}, usagef("--for %q: want user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME", text)
}

// print writes manifests as kubectl reads them.
func (f *roleFlags) print(w io.Writer, objects []templates.Object) error {
	items := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		delete(fields, "status") // typed objects always have one
		items = append(items, fields)
	}
	return manifests(w, f.output, items)
}
