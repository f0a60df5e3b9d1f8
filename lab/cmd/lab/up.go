package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"liqonet.io/liqonet/lab"
	"liqonet.io/liqonet/lab/build"
	"liqonet.io/liqonet/lab/progress"
	"liqonet.io/liqonet/lab/spec"
	"liqonet.io/liqonet/lab/state"
)

// removeTimeout bounds the removal of a lab.
const removeTimeout = time.Minute

func newUp(name *string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the lab and wait until all nodes are Ready",
		Long: `up builds what is not built yet, which takes minutes the first time, starts the lab and returns when
all nodes are Ready. Run again, it changes nothing. Interrupted, it removes what it started.`,
		Example: `  lab up
  lab up --name other -f clusters.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := spec.Default()
			if file != "" {
				var err error
				if s, err = spec.Read(file); err != nil {
					return err
				}
			}
			return up(cmd, *name, s)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "YAML file that declares the clusters; default: a and b with two nodes each")
	return cmd
}

func up(cmd *cobra.Command, name string, s spec.Spec) error {
	ctx := cmd.Context()
	l, err := lab.Start(ctx, lab.Options{Name: name, Spec: s, Log: cmd.ErrOrStderr()})
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), remove(ctx, name))
	}
	if errors.Is(err, lab.ErrOtherSpec) {
		return fmt.Errorf("%w: run \"lab down --name %s\" first", err, name)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "export KUBECONFIG=%s\n", l.Kubeconfig())
	return err
}

func newDown(name *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "End the lab and remove all that it has on this machine",
		Long:  `down works whatever state the lab is in, also after it was killed, and may be run again.`,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names := []string{*name}
			if all {
				var err error
				if names, err = state.Names(); err != nil {
					return err
				}
			}
			for _, n := range names {
				if err := remove(cmd.Context(), n); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "removed lab %s; compiled programs stay in the cache\n", n)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every lab of this machine")
	return cmd
}

// remove removes a lab, also when the command was interrupted meanwhile.
func remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	return lab.Remove(ctx, name)
}

func newBuild() *cobra.Command {
	var plugins []string
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the lab's programs into the cache and print their folder",
		Long: `build compiles Kubernetes, etcd, containerd and the rest from Go modules, unless the cache has them.
The cache is liqonet-lab in the user's cache folder, or where LIQONET_LAB_CACHE says.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var real []spec.NetworkPlugin
			for _, name := range plugins {
				p := spec.NetworkPlugin(name)
				if !slices.Contains(spec.RealPlugins(), p) {
					return fmt.Errorf("plugin %q: want one of %v", name, spec.RealPlugins())
				}
				real = append(real, p)
			}
			report := progress.New(cmd.ErrOrStderr())
			if len(real) > 0 { // a compiler is needed
				if err := build.EnsureHost(cmd.Context(), report, real...); err != nil {
					return err
				}
			}
			dir, err := build.Ensure(cmd.Context(), report, real...)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
	cmd.Flags().StringSliceVar(&plugins, "plugin", nil, "build these network plugins, too: flannel, cilium")
	return cmd
}
