// Command helm renders a Helm chart, without a cluster and without storing a release: helm CHART NAME NAMESPACE
// KUBERNETES-VERSION, with the values as YAML on stdin. The documents on stdout begin with the chart's CRDs.
package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func main() {
	if err := render(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func render(args []string, in io.Reader, out io.Writer) error {
	const wanted = 4
	if len(args) != wanted {
		return errors.New("usage: helm CHART NAME NAMESPACE KUBERNETES-VERSION < VALUES")
	}
	chart, err := loader.Load(args[0])
	if err != nil {
		return fmt.Errorf("load chart %s: %w", args[0], err)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read values: %w", err)
	}
	own, err := chartutil.ReadValues(text)
	if err != nil {
		return fmt.Errorf("parse values: %w", err)
	}
	version, err := chartutil.ParseKubeVersion(args[3])
	if err != nil {
		return fmt.Errorf("parse Kubernetes version %s: %w", args[3], err)
	}
	able := chartutil.DefaultCapabilities.Copy()
	able.KubeVersion = *version
	release := chartutil.ReleaseOptions{Name: args[1], Namespace: args[2], Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, own, release, able)
	if err != nil {
		return fmt.Errorf("complete values of chart %s: %w", chart.Name(), err)
	}
	files, err := engine.Render(chart, values)
	if err != nil {
		return fmt.Errorf("render chart %s: %w", chart.Name(), err)
	}
	var documents []string
	for _, crd := range chart.CRDObjects() {
		documents = append(documents, string(crd.File.Data))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if document := files[name]; path.Ext(name) == ".yaml" && strings.TrimSpace(document) != "" {
			documents = append(documents, document)
		}
	}
	_, err = io.WriteString(out, strings.Join(documents, "\n---\n"))
	return err
}
