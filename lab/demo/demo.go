// Package demo shows liqonet to a newcomer: two clusters with the same pod CIDR, connected, and a page fetched
// from pod to pod both ways. It runs the commands that a user would, and prints each before its output.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"liqonet.io/liqonet/lab"
)

//go:embed web.yaml
var web string

// Demo is a demonstration in a running lab with clusters a and b.
type Demo struct {
	Lab     *lab.Lab
	Liqoctl string // path of the program
	Command string // path of the lab's own command, for the commands to try next
	Out     io.Writer
}

// Run connects the clusters and fetches the pages.
func (d Demo) Run(ctx context.Context) error {
	image, err := d.load(ctx)
	if err != nil {
		return err
	}
	for _, cluster := range []string{"a", "b"} {
		if err := d.deploy(ctx, cluster); err != nil {
			return err
		}
	}
	connect := []string{"network", "connect", "--context", "a", "--remote-context", "b", "--gw-server-service-type", "NodePort", "--image", image}
	if err := d.liqoctl(ctx, connect...); err != nil {
		return err
	}
	for _, way := range [][2]string{{"a", "b"}, {"b", "a"}} {
		if err := d.fetch(ctx, way[0], way[1]); err != nil {
			return err
		}
	}
	if err := d.liqoctl(ctx, "network", "status", "--context", "a"); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.Out, next, d.Lab.Kubeconfig(), d.Liqoctl, d.Command)
	return err
}

const next = `
Both pages travelled from pod to pod, between clusters that use the same addresses, encrypted between the clusters. To see
that (tcpdump needed; any other link also has packets within a cluster): %[3]s exec router -- tcpdump -Xni br-a. Next, try:

  export KUBECONFIG=%[1]s
  %[2]s network status --context b -o wide
  %[2]s ipam list --context a
  %[3]s kubectl a get pods -A -o wide
  %[3]s node add b && %[2]s network status --context b --watch
  %[2]s network disconnect --context a --remote-context b
  make demo-down
`

// load imports liqoctl's own image into the nodes, as there is no registry, and returns its name.
func (d Demo) load(ctx context.Context) (name string, err error) {
	dir, err := os.MkdirTemp("", "liqonet-demo-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, "image.tar")
	var printed bytes.Buffer
	save := d.command(ctx, "image", "save", "-o", archive)
	save.Stdout = io.MultiWriter(&printed, d.Out)
	d.printCommand(save.Args...)
	if err := d.run(save); err != nil {
		return "", err
	}
	d.printCommand(d.Command, "load", archive)
	image, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer image.Close()
	name, _, _ = strings.Cut(strings.TrimSpace(printed.String()), "@") // nodes know it by its tag
	return name, d.Lab.Load(ctx, image)
}

// deploy starts a web server in a cluster.
func (d Demo) deploy(ctx context.Context, cluster string) error {
	d.printCommand(d.Command, "kubectl", cluster, "apply", "-f", "lab/demo/web.yaml")
	apply, err := d.Lab.KubectlCommand(ctx, cluster, "apply", "-f", "-")
	if err != nil {
		return err
	}
	apply.Stdin = strings.NewReader(web)
	if err := d.run(apply); err != nil {
		return err
	}
	wait, err := d.Lab.KubectlCommand(ctx, cluster, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	if err != nil {
		return err
	}
	wait.Stdout = io.Discard
	return d.run(wait)
}

// fetch gets the page of one cluster's pod from the other's pod, by the address that liqoctl prints.
func (d Demo) fetch(ctx context.Context, from, to string) error {
	real, err := d.Lab.Kubectl(ctx, to, "get", "pod", "web", "-o", "jsonpath={.status.podIP}")
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.Out, "\n# pod web of %s has the address %s there; how do pods of %s reach it?", to, real, from)
	var seen bytes.Buffer
	translate := d.command(ctx, "ipam", "translate", "--context", from, "--from", to, string(real))
	translate.Stdout = io.MultiWriter(&seen, d.Out)
	d.printCommand(translate.Args...)
	if err := d.run(translate); err != nil {
		return err
	}
	args := []string{"exec", "web", "--", "/bin/workload", "get", "http://" + strings.TrimSpace(seen.String()) + ":8080/"}
	d.printCommand(append([]string{d.Command, "kubectl", from}, args...)...)
	get, err := d.Lab.KubectlCommand(ctx, from, args...)
	if err != nil {
		return err
	}
	return d.run(get)
}

func (d Demo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.Liqoctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.Lab.Kubeconfig())
	return cmd
}

func (d Demo) liqoctl(ctx context.Context, args ...string) error {
	d.printCommand(append([]string{d.Liqoctl}, args...)...)
	return d.run(d.command(ctx, args...))
}

// printCommand prints a command as a user would type it.
func (d Demo) printCommand(args ...string) {
	_, _ = fmt.Fprintf(d.Out, "\n$ %s\n", strings.Join(args, " "))
}

// run runs a command whose output belongs to the demonstration.
func (d Demo) run(cmd *exec.Cmd) error {
	if cmd.Stdout == nil {
		cmd.Stdout = d.Out
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
