package translation

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"liqonet.io/liqonet/docs"
	"liqonet.io/liqonet/ipam/translate"
)

// openAPI is docs/openapi.json with every reference replaced by what it refers to.
type openAPI struct {
	spec3.OpenAPI
	text string
}

var readDocument = sync.OnceValues(func() (*openAPI, error) {
	var all any
	if err := json.Unmarshal(docs.OpenAPI, &all); err != nil {
		return nil, err
	}
	text, err := json.Marshal(resolved(all, all))
	if err != nil {
		return nil, err
	}
	d := &openAPI{text: string(text)}
	return d, json.Unmarshal(text, &d.OpenAPI)
})

func document(t testing.TB) *openAPI {
	t.Helper()
	d, err := readDocument()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// resolved replaces references in a value of JSON. One that leads nowhere stays.
func resolved(v, root any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = resolved(v[i], root)
		}
	case map[string]any:
		if to, ok := v["$ref"].(string); ok {
			target := root
			for _, word := range strings.Split(strings.TrimPrefix(to, "#/"), "/") {
				object, _ := target.(map[string]any)
				target = object[word]
			}
			if target == nil {
				return v
			}
			return resolved(target, root)
		}
		for key := range v {
			v[key] = resolved(v[key], root)
		}
	}
	return v
}

// operation finds what the document says of a request; nil: nothing.
func (d *openAPI) operation(method, path string) *spec3.Operation {
	for template, p := range d.Paths.Paths {
		want, got := strings.Split(template, "/"), strings.Split(path, "/")
		same := len(want) == len(got)
		for i := range min(len(want), len(got)) {
			same = same && (want[i] == got[i] || strings.HasPrefix(want[i], "{"))
		}
		switch {
		case same && method == http.MethodGet:
			return p.Get
		case same && method == http.MethodPost:
			return p.Post
		}
	}
	return nil
}

// compare fails a test unless the answer to a request is as the document has it.
func (d *openAPI) compare(t testing.TB, req *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	if got := answer.Header.Get("Content-Type"); got != contentType {
		t.Errorf("%s %s: content type %q", req.Method, req.URL.Path, got)
	}
	schema := d.Components.Schemas["Problem"]
	if o := d.operation(req.Method, req.URL.Path); o != nil {
		said, ok := o.Responses.StatusCodeResponses[answer.StatusCode]
		if !ok {
			t.Errorf("%s %s: status %d is not in docs/openapi.json", req.Method, req.URL.Path, answer.StatusCode)
			return
		}
		schema = said.Content[contentType].Schema
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Errorf("%s %s: %v in %s", req.Method, req.URL.Path, err, body)
		return
	}
	checkAgainst(t, schema, value, req.Method+" "+req.URL.Path+": "+strconv.Itoa(answer.StatusCode))
}

func checkAgainst(t testing.TB, schema *spec.Schema, value any, what string) {
	t.Helper()
	if result := validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(value); !result.IsValid() {
		t.Errorf("%s: %v", what, result.AsError())
	}
}

// TestDocumentHasEveryRoute compares the document with the handlers, both ways.
func TestDocumentHasEveryRoute(t *testing.T) {
	served := []string{"GET /openapi.json", "GET /readyz", "GET /livez"}
	open := len(served)
	for _, r := range routes() {
		served = append(served, r.method+" "+r.path)
	}
	var described []string
	d := document(t)
	for path, p := range d.Paths.Paths {
		for method, o := range map[string]*spec3.Operation{"GET": p.Get, "POST": p.Post, "PUT": p.Put, "PATCH": p.Patch, "DELETE": p.Delete} {
			if o == nil {
				continue
			}
			described = append(described, method+" "+path)
			if free := o.SecurityRequirement != nil && len(o.SecurityRequirement) == 0; free != slices.Contains(served[:open], method+" "+path) {
				t.Errorf("%s %s: without a token: %v", method, path, free)
			}
			for _, parameter := range o.Parameters {
				if parameter.In == "path" && !strings.Contains(path, "{"+parameter.Name+"}") {
					t.Errorf("%s: no parameter %s in it", path, parameter.Name)
				}
			}
		}
	}
	slices.Sort(served)
	slices.Sort(described)
	if !slices.Equal(served, described) {
		t.Errorf("served:    %v\ndescribed: %v", served, described)
	}
	if strings.Contains(d.text, "$ref") || d.Version != "3.0.3" {
		t.Errorf("version %q, or a reference leads nowhere", d.Version)
	}
}

// TestDocumentHasEveryReason: the words that programs decide by are all in the document.
func TestDocumentHasEveryReason(t *testing.T) {
	var reasons []string
	for _, value := range document(t).Components.Schemas["Problem"].Properties["reason"].Enum {
		reasons = append(reasons, value.(string))
	}
	for _, err := range []error{
		errUnread, translate.ErrNoFabric, &translate.DamagedError{Peer: "b", Err: errUnread}, refusef(400, "bad-request", ""), refusef(413, "too-large", ""),
	} {
		if p := problemOf(err); !slices.Contains(reasons, p.Reason) {
			t.Errorf("%v: reason %q is not in the document", err, p.Reason)
		}
	}
}
