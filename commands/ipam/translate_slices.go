package ipam

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"liqonet.io/liqonet/commands/cli"
	"liqonet.io/liqonet/commands/ui"
	"liqonet.io/liqonet/ipam/translate"
)

// translateSlices rewrites EndpointSlices: all of them, or none.
func (o translateOptions) translateSlices(ctx context.Context, env *cli.Env, api string, load func(context.Context) (translate.Cluster, error)) error {
	text, err := readInput(o.file, env.In)
	if err != nil {
		return err
	}
	given, err := readSlices(strings.NewReader(string(text)))
	if err != nil {
		return fmt.Errorf("read %s: %w", o.source(), err)
	}
	translateOne, err := o.translator(ctx, api, load)
	if err != nil {
		return err
	}
	var translated []*discoveryv1.EndpointSlice
	var errs []error
	for _, slice := range given {
		result, err := translate.EndpointSlice(slice, translateOne)
		translated, errs = append(translated, result), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return ui.Manifests(env.Out, o.output, translated)
}

// readSlices reads EndpointSlices, or lists of them, from documents in JSON or YAML.
func readSlices(r io.Reader) ([]*discoveryv1.EndpointSlice, error) {
	const buffer = 4096 // bytes from which the decoder detects the format
	decoder := yaml.NewYAMLOrJSONDecoder(r, buffer)
	var all []*discoveryv1.EndpointSlice
	for {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err == nil && (len(document.Raw) == 0 || string(document.Raw) == "null"): // between two separators
			continue
		case err == nil:
			all, err = appendSlices(all, document.Raw)
		}
		if err != nil {
			return nil, err
		}
	}
}

// appendSlices decodes an EndpointSlice, or a list of them. Items of a typed list may omit kind and version.
func appendSlices(all []*discoveryv1.EndpointSlice, document []byte) ([]*discoveryv1.EndpointSlice, error) {
	object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, document)
	if err != nil {
		return nil, err
	}
	add := func(object runtime.Object) error {
		want := discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")
		if kind := object.GetObjectKind().GroupVersionKind(); kind != want {
			return fmt.Errorf("%s %s: want EndpointSlices of %s", kind.GroupVersion(), kind.Kind, want.GroupVersion())
		}
		slice := &discoveryv1.EndpointSlice{}
		all = append(all, slice)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.(*unstructured.Unstructured).Object, slice)
	}
	if list, ok := object.(*unstructured.UnstructuredList); ok {
		return all, list.EachListItem(add)
	}
	return all, add(object)
}
