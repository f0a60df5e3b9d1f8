package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"liqonet.io/liqonet/ipam/translate"
)

// translateSlices rewrites EndpointSlices: all of them, or none.
func (o translateOptions) translateSlices(ctx context.Context, env *Env, kube string, load func(context.Context) (translate.Cluster, error)) error {
	text, err := readInput(o.file, env.In)
	if err != nil {
		return err
	}
	given, err := readSlices(strings.NewReader(string(text)))
	if err != nil {
		return fmt.Errorf("read %s: %w", o.source(), err)
	}
	ask, err := o.question(ctx, kube, load)
	if err != nil {
		return err
	}
	var translated []*discoveryv1.EndpointSlice
	var errs []error
	for _, slice := range given {
		there, err := translate.EndpointSlice(slice, ask)
		translated, errs = append(translated, there), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return manifests(env.Out, o.output, translated)
}

// readSlices reads EndpointSlices, or lists of them, from documents in JSON or YAML.
func readSlices(r io.Reader) ([]*discoveryv1.EndpointSlice, error) {
	const buffer = 4096 // bytes, in which the decoder looks for the format
	decoder := yaml.NewYAMLOrJSONDecoder(r, buffer)
	var all []*discoveryv1.EndpointSlice
	for {
		var document runtime.RawExtension
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		slices, err := slicesOf(document.Raw, metav1.TypeMeta{})
		if err != nil {
			return nil, err
		}
		all = append(all, slices...)
	}
}

// slicesOf decodes an object. Items of a typed list do not say themselves what they are.
func slicesOf(document []byte, implied metav1.TypeMeta) ([]*discoveryv1.EndpointSlice, error) {
	if len(document) == 0 || string(document) == "null" { // as between two separators
		return nil, nil
	}
	object := struct {
		metav1.TypeMeta
		Items []json.RawMessage
	}{TypeMeta: implied}
	if err := json.Unmarshal(document, &object); err != nil {
		return nil, err
	}
	endpointSlice := metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice"}
	switch object.TypeMeta {
	case endpointSlice:
		slice := &discoveryv1.EndpointSlice{}
		return []*discoveryv1.EndpointSlice{slice}, json.Unmarshal(document, slice)
	case metav1.TypeMeta{APIVersion: "v1", Kind: "List"}:
		implied = metav1.TypeMeta{}
	case metav1.TypeMeta{APIVersion: endpointSlice.APIVersion, Kind: "EndpointSliceList"}:
		implied = endpointSlice
	default:
		return nil, fmt.Errorf("%s %s: want EndpointSlices of %s", object.APIVersion, object.Kind, endpointSlice.APIVersion)
	}
	var all []*discoveryv1.EndpointSlice
	for _, item := range object.Items {
		slices, err := slicesOf(item, implied)
		if err != nil {
			return nil, err
		}
		all = append(all, slices...)
	}
	return all, nil
}
