// Package incluster has the commands that run in pods. They are hidden from users.
package incluster

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/internal/helper"
	"liqonet.io/liqonet/internal/helper/gateway"
	"liqonet.io/liqonet/internal/helper/logs"
	"liqonet.io/liqonet/internal/helper/node"
	"liqonet.io/liqonet/internal/kube"
	"liqonet.io/liqonet/netops/kernel"
	"liqonet.io/liqonet/templates"
)

// New returns the group of these commands.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("helper", "Run inside a cluster", "", "")
	cmd.Hidden = true
	cmd.AddCommand(newHelperNode(env, node.Helper.Run), newHelperGateway(env, gateway.Helper.Run),
		newHelperVerify(kernel.Leftovers), newHelperTest(env), newHelperTrace(env))
	return cmd
}

// helperEnv is what a helper is given that keeps a kernel, without a client, and the node that it runs on. Probes and
// metrics are served at the host's address; "": all addresses.
func helperEnv(env *cli.Env, host string) (o helper.Env, node string, err error) {
	o.HealthAddress, o.Log = net.JoinHostPort(host, strconv.Itoa(templates.ProbePort)), helperLog(env)
	err = given(env, map[string]*string{"NAMESPACE": &o.Namespace, "NODE_NAME": &node})
	return o, node, err
}

// helperLog returns the log of a helper. It is for machines, and contains changes only.
func helperLog(env *cli.Env) *slog.Logger {
	level := slog.LevelInfo
	if env.Verbose {
		level = slog.LevelDebug
	}
	log := logs.New(env.Err, level)
	klog.SetSlogLogger(log) // informers report an unavailable API server only there
	return log
}

// given reads variables that the helpers' manifests set. It refuses those that are missing.
func given(env *cli.Env, variables map[string]*string) error {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if *variables[name] = cmp.Or(*variables[name], env.Variable(name)); *variables[name] == "" {
			return cli.Usagef("$%s is required", name)
		}
	}
	return nil
}

// addClient gives a helper the client of its pod's service account.
func addClient(env *cli.Env, h *helper.Env) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("find API server: %w", err)
	}
	var dialer kube.Dialer
	h.Dialed, config.Dial = dialer.Dialed, dialer.DialContext
	c, err := kube.Open(config, kube.Options{Context: "in-cluster", Namespace: h.Namespace, Version: env.Build.Version})
	if err == nil {
		h.Client = c.Kube
	}
	return err
}
