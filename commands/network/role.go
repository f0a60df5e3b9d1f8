package network

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/internal/setting"
	"liqonet.io/liqonet/templates"
)

func newRole(env *cli.Env, local *cli.ClusterFlags) *cobra.Command {
	output := ui.FormatYAML
	words := setting.Words(templates.Levels()...)
	levels := strings.Split(words, "|")
	cmd := &cobra.Command{
		Use:   "role " + words,
		Short: "Print the RBAC roles of users of liqonet",
		Long: `Print the RBAC roles of users of liqonet, as manifests for an administrator of the cluster. The command connects to no
cluster. To standard error it writes the commands that bind the roles to a user. Each level includes the previous one:

  view        network status, diagnose, trace and report;
              ipam list and translate
  operate     network connect, disconnect and rotate-keys if liqonet is installed,
              expose and unexpose; ipam reserve, acquire and release
  administer  network init and reset, test and trace --live, and
              connect if liqonet is not installed yet

Only the level administer may write outside the namespace of liqonet, and only named objects.`,
		Example: `  # Let alice connect clusters in which liqonet is installed
  liqoctl network role operate | kubectl apply -f -
  kubectl create rolebinding liqonet:operate:alice -n liqonet --role liqonet:operate --user alice
  kubectl create clusterrolebinding liqonet:liqonet:operate:alice --clusterrole liqonet:liqonet:operate --user alice`,
		Args:              cli.Arguments("level (" + strings.Join(levels, ", ") + ")"),
		ValidArgsFunction: cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			objects, err := templates.Access(local.Config.Namespace, templates.Level(args[0]))
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			if err := printObjects(env.Out, output, objects); err != nil {
				return err
			}
			env.Progress.Note(bindings(objects, local.Config.Context))
			return nil
		},
	}
	ui.OutputFlag(cmd, &output)
	return cmd
}

// bindings returns the commands that grant the roles to a user.
func bindings(objects []templates.Object, context string) string {
	kubectl := "kubectl"
	if context != "" {
		kubectl += " --context " + kube.ShellWord(context)
	}
	text := "then bind the roles to a user, or to a --group, or to a --serviceaccount NAMESPACE:NAME:"
	for _, o := range objects {
		switch o.(type) {
		case *rbacv1.Role:
			text += fmt.Sprintf("\n%s create rolebinding %s:USER -n %s --role %[2]s --user USER", kubectl, o.GetName(), o.GetNamespace())
		case *rbacv1.ClusterRole:
			text += fmt.Sprintf("\n%s create clusterrolebinding %s:USER --clusterrole %[2]s --user USER", kubectl, o.GetName())
		}
	}
	return text
}

// printObjects writes manifests as kubectl reads them.
func printObjects(w io.Writer, output ui.Format, objects []templates.Object) error {
	items := make([]map[string]any, 0, len(objects))
	for _, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		delete(fields, "status") // typed objects always have one
		items = append(items, fields)
	}
	return ui.Manifests(w, output, items)
}
