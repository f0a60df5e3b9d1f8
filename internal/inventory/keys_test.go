package inventory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"liqonet.io/liqonet/internal/records"
	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/internal/wireguard"
)

func TestKeysDoNotPrint(t *testing.T) {
	made, err := CompleteKeys(make([]*Keys, 1), nil)
	require.NoError(t, err)
	k := made[0]
	key := k.Private()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{k, &k, struct{ keys *Keys }{&k}, []Keys{k}} {
			text := fmt.Sprintf(verb, v)
			for _, form := range []string{"%s", "%v", "%d", "%x", "%q", "%#v"} {
				if strings.Contains(text, strings.Trim(fmt.Sprintf(form, key), "\"[]{}")) || strings.Contains(text, strings.Trim(fmt.Sprintf(form, key[:4]), "\"[]{}")) {
					t.Errorf("%s of %T shows a key", verb, v)
				}
			}
		}
	}
	object := KeysObject("ns", records.GatewayID{Peering: "b", Number: 1}, k)
	object.Data[wireguard.PrivateKey] = []byte("almost a key")
	if _, err := decodeKey(object, wireguard.PrivateKey); err == nil || strings.Contains(err.Error(), "almost") {
		t.Errorf("error %v", err)
	}
}

// TestKeysCreated: the creation time is that of the private key. It is not known for a Secret that an earlier release
// created.
func TestKeysCreated(t *testing.T) {
	id := records.GatewayID{Peering: "b", Number: 1}
	made, err := NewKeys(nil)
	require.NoError(t, err)
	if since := time.Since(made.Created); since < 0 || since > time.Minute {
		t.Errorf("made %s ago", since)
	}
	made.Preshared = made.Private
	object := KeysObject("ns", id, made)
	read, err := DecodeKeys(object)
	if err != nil || !read.Created.Equal(made.Created) {
		t.Errorf("read %v, want %s (%v)", read, made.Created, err)
	}
	other, err := NewKeys(nil)
	require.NoError(t, err)
	kept, err := CompleteKeys([]*Keys{read}, other.Private)
	if err != nil || !kept[0].Created.Equal(made.Created) {
		t.Errorf("another preshared key: created %s (%v)", kept[0].Created, err)
	}
	delete(object.Data, records.CreatedKey)
	if read, err = DecodeKeys(object); err != nil || !read.Created.IsZero() {
		t.Errorf("without a time: %v, %v", read, err)
	}
	if _, ok := KeysObject("ns", id, *read).Data[records.CreatedKey]; ok {
		t.Error("a time was made up")
	}
}

// TestCompleteKeys checks that each gateway has its own private key, and all have the given preshared key or, if none
// is given, one new key.
func TestCompleteKeys(t *testing.T) {
	first, err := CompleteKeys(make([]*Keys, 1), nil)
	require.NoError(t, err)
	again, err := CompleteKeys([]*Keys{&first[0], nil, nil}, first[0].Preshared)
	require.NoError(t, err)
	if len(again) != 3 || !again[0].Equal(&first[0]) {
		t.Fatalf("%d keys; that of the first gateway is kept: %v", len(again), again[0].Equal(&first[0]))
	}
	seen := make(map[string]bool)
	for _, k := range again {
		if seen[k.Public()] || k.Preshared() != first[0].Preshared() {
			t.Error("two gateways have one private key, or different preshared keys")
		}
		seen[k.Public()] = true
	}
	renewed, err := CompleteKeys([]*Keys{&first[0]}, nil)
	if err != nil || renewed[0].Preshared() == first[0].Preshared() || renewed[0].Private() != first[0].Private() {
		t.Errorf("a new preshared key: %v", err)
	}
}
