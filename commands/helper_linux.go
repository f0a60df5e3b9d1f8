package commands

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"liqonet.io/liqonet/internal/cluster"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/translation"
)

func newHelper(env *Env) *cobra.Command {
	cmd := group("helper", "Run inside a cluster", "", "")
	cmd.Hidden = true
	cmd.AddCommand(newHelperNode(env, helper.Node.Run), newHelperGateway(env, helper.Gateway.Run),
		newHelperTranslate(env, translation.Service.Run), newHelperSweep(helper.Sweep), newHelperTest(env))
	return cmd
}

// helperFlags are the flags of the helpers that keep a kernel.
type helperFlags struct {
	namespace     string
	node          string
	healthAddress string
}

// register adds the flags to a command. Empty ones are taken from the variables that the helpers' manifests set.
func (f *helperFlags) register(cmd *cobra.Command, healthAddress string) {
	flags := cmd.Flags()
	flags.StringVar(&f.namespace, "namespace", "", "`NAMESPACE` of liqonet (default: $NAMESPACE)")
	flags.StringVar(&f.node, "node", "", "`NAME` of the node that the helper runs on (default: $NODE_NAME)")
	flags.StringVar(&f.healthAddress, "health-address", healthAddress, "`ADDRESS:PORT` of probes and metrics")
}

// options returns what a helper is given, without a client.
func (f *helperFlags) options(env *Env) (o helper.Env, node string, err error) {
	o.HealthAddress, o.Log = f.healthAddress, helperLog(env)
	err = given(env, required{&o.Namespace, "namespace", f.namespace, "NAMESPACE"}, required{&node, "node", f.node, "NODE_NAME"})
	return o, node, err
}

// helperLog returns the log of a helper. It is for machines, and tells what changes.
func helperLog(env *Env) *slog.Logger {
	level := slog.LevelInfo
	if env.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(env.Err, &slog.HandlerOptions{Level: level}))
	klog.SetSlogLogger(log) // informers tell of a lost API server there, and nowhere else
	return log
}

// required is an option that a flag sets, or else an environment variable.
type required struct {
	to                    *string
	flag, value, variable string
}

// given sets options. It refuses those for which neither a flag nor a variable is there.
func given(env *Env, options ...required) error {
	for _, o := range options {
		if *o.to = cmp.Or(o.value, env.variable(o.variable)); *o.to == "" {
			return usagef("--%s or $%s is required", o.flag, o.variable)
		}
	}
	return nil
}

// addClient gives a helper the client of its pod's service account.
func addClient(env *Env, h *helper.Env) (err error) {
	h.Dialer = new(helper.Dialer)
	h.Client, err = inClusterClient(env, h.Namespace, h.Dialer.DialContext)
	return err
}

// inClusterClient returns the client of the service account of the pod that this runs in. A nil dial is the usual one.
func inClusterClient(env *Env, namespace string, dial func(context.Context, string, string) (net.Conn, error)) (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find API server: %w", err)
	}
	config.Dial = dial
	c, err := cluster.Open(config, cluster.Options{Context: "in-cluster", Namespace: namespace, Version: env.Build.Version})
	if err != nil {
		return nil, err
	}
	return c.Kube, nil
}
