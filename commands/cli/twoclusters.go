package cli

import (
	"github.com/spf13/cobra"

	"liqonet.io/liqonet/internal/kube"
)

// TwoClusters are the flags of a command that works on both ends of a peering.
type TwoClusters struct{ Local, Remote *ClusterFlags }

// NewTwoClusters adds the flags of the remote cluster to a command.
func NewTwoClusters(cmd *cobra.Command, local *ClusterFlags) TwoClusters {
	t := TwoClusters{local, NewRemoteFlags()}
	t.Remote.Register(cmd, cmd.Flags())
	return t
}

// Connect makes the clients of both clusters. It sends nothing.
func (t TwoClusters) Connect(env *Env) (local, remote *kube.Cluster, err error) {
	if !t.Remote.Chosen() {
		err := Usagef("the remote cluster is required")
		err.Advice = "set --remote-context or --remote-kubeconfig"
		return nil, nil, err
	}
	t.Remote.Inherit(t.Local)
	if t.Local.same(t.Remote) {
		return nil, nil, Usagef("the local and the remote cluster are the same: context %q", t.Local.Config.Context)
	}
	if local, err = t.Local.Connect(env); err != nil {
		return nil, nil, err
	}
	remote, err = t.Remote.Connect(env)
	return local, remote, err
}

// ConnectChosen is like Connect, but the remote cluster may be left open: it is nil then.
func (t TwoClusters) ConnectChosen(env *Env) (local, remote *kube.Cluster, err error) {
	if t.Remote.Chosen() {
		return t.Connect(env)
	}
	local, err = t.Local.Connect(env)
	return local, nil, err
}
