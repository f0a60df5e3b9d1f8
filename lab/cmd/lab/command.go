package main

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
)

// newCommand returns the whole command tree.
func newCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Kubernetes clusters in network namespaces of this machine",
		Long: `lab starts real Kubernetes clusters on one machine: network namespaces are the nodes; etcd, API
server, controller manager, scheduler, kubelet, kube-proxy, containerd and runc are the real ones.
It needs root, no Docker, no registry, no hypervisor.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&name, "name", lab.DefaultName, "name of the lab; labs of different names run side by side")
	cmd.AddCommand(
		newUp(&name), newDown(&name), newStatus(&name), newBuild(),
		newExec(&name), newKubeconfig(&name), newKubectl(&name), newLoad(&name), newNode(&name), newDemo(&name),
		newGuest(),
	)
	cmd.AddCommand(newInternal()...)
	return cmd
}

// onLab is the function of a command for the running lab of a name.
func onLab(
	name *string, run func(cmd *cobra.Command, l *lab.Lab, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		l, err := lab.Open(cmd.Context(), *name)
		if err != nil {
			return err
		}
		return run(cmd, l, args)
	}
}
