// Command kubectl is that of Kubernetes. It is a program of its own: tests start it a thousand times, and what kube
// starts with takes three times as long.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
)

func main() {
	// kubectl prints its own errors, in its own form.
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
