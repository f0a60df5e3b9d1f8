package templates

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/require"
)

// FuzzGateway renders a gateway's manifests with untrusted texts. Accepted texts do not change the fields, and result
// in names and labels that an API server accepts.
func FuzzGateway(f *testing.F) {
	const image = "registry.example/liqonet:v1"
	render := func(namespace, peering, image string) ([]Object, error) {
		return gateway(func(v *GatewayValues) { v.Namespace, v.Peering, v.Image = namespace, peering, image })()
	}
	plain, err := render("liqonet", "milan", image)
	if err != nil {
		f.Fatal(err)
	}
	want := fieldsOf(f, plain)
	f.Add("liqonet", "milan", image)
	f.Add("liqonet\n", "milan", image)
	f.Add("liqonet", "milan\n---\nkind: Secret", image)
	f.Add("liqonet", "milan", "x\nimagePullPolicy: Always")
	f.Add("a-b", "milan", "\"x\",command:[\"sh\"]}#'{{.Image}}")
	f.Add("0", "no", "1e3")
	f.Fuzz(func(t *testing.T, namespace, peering, image string) {
		objects, err := render(namespace, peering, image)
		if err != nil {
			return
		}
		assert.Equal(t, "other fields", want, fieldsOf(t, objects))
		for _, o := range objects {
			wrong := slices.Concat(validation.IsDNS1123Subdomain(o.GetName()), validation.IsDNS1123Label(o.GetNamespace()))
			for _, value := range o.GetLabels() {
				wrong = append(wrong, validation.IsValidLabelValue(value)...)
			}
			if len(wrong) > 0 {
				t.Errorf("%T %q in %q: %v", o, o.GetName(), o.GetNamespace(), wrong)
			}
		}
	})
}

// fieldsOf returns the paths of all non-empty fields of manifests, after encoding and decoding, with the types of their
// values.
func fieldsOf(t testing.TB, objects []Object) []string {
	t.Helper()
	var paths []string
	for i, o := range objects {
		text, err := yaml.Marshal(o)
		require.NoError(t, err)
		var read any
		require.NoError(t, yaml.Unmarshal(text, &read))
		paths = appendFields(paths, fmt.Sprint(i), read)
	}
	slices.Sort(paths)
	return paths
}

func appendFields(paths []string, at string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			paths = appendFields(paths, at+"."+key, inner)
		}
	case []any:
		for i, inner := range v {
			paths = appendFields(paths, fmt.Sprintf("%s[%d]", at, i), inner)
		}
	default:
		paths = append(paths, fmt.Sprintf("%s %T", at, v))
	}
	return paths
}
