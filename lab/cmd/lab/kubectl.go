package main

import (
	"fmt"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
)

func newKubectl(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "kubectl CLUSTER [ARGUMENT...]",
		Short:   "Run kubectl for a cluster",
		Example: `  lab kubectl a get pods -A -o wide`,
		Args:    cobra.MinimumNArgs(1),
		RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			kubectl, err := l.KubectlCommand(cmd.Context(), args[0], args[1:]...)
			if err != nil {
				return err
			}
			return syscall.Exec(kubectl.Path, kubectl.Args, kubectl.Env)
		}),
	}
	cmd.Flags().SetInterspersed(false) // flags after CLUSTER are kubectl's
	return cmd
}

func newKubeconfig(name *string) *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of a kubeconfig with one context a cluster",
		Example: `  export KUBECONFIG=$(lab kubeconfig); kubectl --context a get nodes`,
		Args:    cobra.NoArgs,
		RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), l.Kubeconfig())
			return err
		}),
	}
}

func newLoad(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE.tar",
		Short: "Make the images of an archive known to every node",
		Long: `load imports an archive as "docker save" writes it into the containerd of every node, also of nodes
that are added later.`,
		Args: cobra.ExactArgs(1),
		RunE: onLab(name, func(cmd *cobra.Command, l *lab.Lab, args []string) error {
			archive, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer archive.Close()
			return l.Load(cmd.Context(), archive)
		}),
	}
}
