package translation

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"

	"liqonet.io/liqonet/ipam/translate"
)

// maxAddresses is how many addresses one request may ask for.
const maxAddresses = 256

// Answer is what is known of addresses, in the order in which they were given. `liqoctl ipam translate` prints the
// same.
type Answer struct {
	Addresses []translate.Address `json:"addresses"`
}

// Peers are the names of the peerings, sorted.
type Peers struct {
	Peers []string `json:"peers"`
}

// route is one question that can be asked.
type route struct {
	method, path string
	answer       func(*view, *http.Request) (any, error)
}

// ask is one of a translator's questions.
type ask func(translate.Translator, netip.Addr) (translate.Address, error)

// routes are all questions; docs/openapi.json has the same.
func routes() []route {
	return []route{
		{http.MethodGet, "/v1/peers", peers},
		{http.MethodGet, "/v1/whose", whose},
		{http.MethodGet, "/v1/peers/{peer}/import", addresses(translate.Translator.Import)},
		{http.MethodGet, "/v1/peers/{peer}/imported-from", addresses(translate.Translator.ImportedFrom)},
		{http.MethodGet, "/v1/peers/{peer}/export", addresses(translate.Translator.Export)},
		{http.MethodGet, "/v1/peers/{peer}/exported-from", addresses(translate.Translator.ExportedFrom)},
		{http.MethodPost, "/v1/peers/{peer}/import/endpointslice", endpointSlice(translate.Translator.Import)},
		{http.MethodPost, "/v1/peers/{peer}/export/endpointslice", endpointSlice(translate.Translator.Export)},
	}
}

func peers(v *view, _ *http.Request) (any, error) {
	if err := v.cluster.Damage(); err != nil {
		return nil, err
	}
	return Peers{append([]string{}, v.cluster.Peers()...)}, nil
}

func whose(v *view, r *http.Request) (any, error) { return answerEach(r, v.cluster.Whose) }

// addresses asks a peering's translator for addresses.
func addresses(question ask) func(*view, *http.Request) (any, error) {
	return func(v *view, r *http.Request) (any, error) {
		t, err := v.cluster.Peer(r.PathValue("peer"))
		if err != nil {
			return nil, err
		}
		return answerEach(r, func(a netip.Addr) (translate.Address, error) { return question(t, a) })
	}
}

// answerEach asks for every address of a request. One that belongs nowhere refuses all.
func answerEach(r *http.Request, question func(netip.Addr) (translate.Address, error)) (any, error) {
	given, err := readAddresses(r)
	if err != nil {
		return nil, err
	}
	answer := Answer{make([]translate.Address, 0, len(given))}
	for _, a := range given {
		translated, err := question(a)
		if err != nil {
			return nil, err
		}
		answer.Addresses = append(answer.Addresses, translated)
	}
	return answer, nil
}

// readAddresses returns the values of query parameter "address".
func readAddresses(r *http.Request) ([]netip.Addr, error) {
	texts := r.URL.Query()["address"]
	if len(texts) == 0 || len(texts) > maxAddresses {
		return nil, refusef(http.StatusBadRequest, "bad-request", "%d addresses given: want ?address=10.244.1.7, up to %d times", len(texts), maxAddresses)
	}
	given := make([]netip.Addr, len(texts))
	for i, text := range texts {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return nil, refusef(http.StatusBadRequest, "bad-request", "%q is not an address such as 10.244.1.7", text)
		}
		given[i] = a
	}
	return given, nil
}

// endpointSlice asks a peering's translator for all addresses of an EndpointSlice.
func endpointSlice(question ask) func(*view, *http.Request) (any, error) {
	return func(v *view, r *http.Request) (any, error) {
		t, err := v.cluster.Peer(r.PathValue("peer"))
		if err != nil {
			return nil, err
		}
		given, err := readSlice(r)
		if err != nil {
			return nil, err
		}
		translated, err := translate.EndpointSlice(given, func(a netip.Addr) (translate.Address, error) { return question(t, a) })
		switch {
		case err == nil:
			return translated, nil
		case is[*translate.UnmappedError](err), is[*translate.UntoldError](err):
			return nil, err
		}
		return nil, refusef(http.StatusBadRequest, "bad-request", "%v", err)
	}
}

// readSlice reads the body of a request, whose size is bounded already.
func readSlice(r *http.Request) (*discoveryv1.EndpointSlice, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != contentType {
		return nil, refusef(http.StatusUnsupportedMediaType, "bad-request", "content type %q: want %s", r.Header.Get("Content-Type"), contentType)
	}
	body, err := io.ReadAll(r.Body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, refusef(http.StatusRequestEntityTooLarge, "too-large", "the body is larger than %d bytes", large.Limit)
	}
	if err != nil {
		return nil, refusef(http.StatusBadRequest, "bad-request", "read the body: %v", err)
	}
	slice := &discoveryv1.EndpointSlice{}
	if err := json.Unmarshal(body, slice); err != nil {
		return nil, refusef(http.StatusBadRequest, "bad-request", "the body is no EndpointSlice: %v", err)
	}
	if version := discoveryv1.SchemeGroupVersion.String(); slice.APIVersion != version || slice.Kind != "EndpointSlice" {
		return nil, refusef(http.StatusBadRequest, "bad-request", "the body is %q of %q: want an EndpointSlice of %s", slice.Kind, slice.APIVersion, version)
	}
	return slice, nil
}
