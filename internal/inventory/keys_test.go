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
	made, _, err := CompleteKeys(make([]*Keys, 1), nil)
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
	kept, _, err := CompleteKeys([]*Keys{read}, []*Keys{{Private: other.Private, Preshared: other.Private}})
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

func TestCompleteKeys(t *testing.T) {
	complete := func(server, client *Keys) (s, c Keys) {
		all, others, err := CompleteKeys([]*Keys{server}, []*Keys{client})
		require.NoError(t, err)
		return all[0], others[0]
	}
	s, c := complete(nil, nil)
	if s.Preshared() != c.Preshared() || s.Private() == c.Private() {
		t.Fatal("new keys are wrong")
	}
	s2, c2 := complete(&s, &c)
	if s2.Private() != s.Private() || c2.Private() != c.Private() || s2.Preshared() != s.Preshared() {
		t.Error("keys that are there were replaced")
	}
	s3, c3 := complete(nil, &c)
	if c3.Private() != c.Private() || s3.Preshared() != c.Preshared() || s3.Private() == s.Private() {
		t.Error("the side that has keys lost them")
	}
	s4, _ := complete(nil, nil)
	if _, c5 := complete(&s4, &c); c5.Preshared() != s4.Preshared() {
		t.Error("the server's preshared key does not count")
	}
}

// TestKeysOfSeveralGateways: each gateway has its own private key, and all share one preshared key.
func TestKeysOfSeveralGateways(t *testing.T) {
	first, _, err := CompleteKeys(make([]*Keys, 1), make([]*Keys, 1))
	require.NoError(t, err)
	s, c, err := CompleteKeys([]*Keys{&first[0], nil}, make([]*Keys, 3))
	require.NoError(t, err)
	if len(s) != 2 || len(c) != 3 || !s[0].Equal(&first[0]) {
		t.Fatalf("%d and %d keys; that of the first gateway is kept: %v", len(s), len(c), s[0].Equal(&first[0]))
	}
	seen := make(map[string]bool)
	for _, k := range append(s, c...) {
		if seen[k.Public()] || k.Preshared() != first[0].Preshared() {
			t.Error("two gateways have one private key, or different preshared keys")
		}
		seen[k.Public()] = true
	}
}
