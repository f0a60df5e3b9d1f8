package commands

import "liqonet.io/liqonet/internal/cluster"

// twoClusters are the flags of a command that works on both ends of a peering.
type twoClusters struct{ local, remote *clusterFlags }

// connect makes the clients of both clusters. It sends nothing.
func (t twoClusters) connect(env *Env) (local, remote *cluster.Cluster, err error) {
	if !t.remote.chosen() {
		err := usagef("the remote cluster is required")
		err.hint = "set --remote-context or --remote-kubeconfig"
		return nil, nil, err
	}
	t.remote.inherit(t.local)
	if t.local.same(t.remote) {
		return nil, nil, usagef("the local and the remote cluster are the same: context %q", t.local.config.Context)
	}
	if local, err = t.local.connect(env); err != nil {
		return nil, nil, err
	}
	remote, err = t.remote.connect(env)
	return local, remote, err
}

// connectChosen is connect where the remote cluster may be left open: it is nil then.
func (t twoClusters) connectChosen(env *Env) (local, remote *cluster.Cluster, err error) {
	if t.remote.chosen() {
		return t.connect(env)
	}
	local, err = t.local.connect(env)
	return local, nil, err
}
