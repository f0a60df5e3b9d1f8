package peering

import (
	"fmt"
	"strings"
	"testing"

	"liqonet.io/liqonet/internal/records"
)

func TestKeysDoNotPrint(t *testing.T) {
	k, _, err := completeKeys(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := k.private()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{k, &k, end{keys: &k}, []keys{k}} {
			text := fmt.Sprintf(verb, v)
			for _, form := range []string{"%s", "%v", "%d", "%x", "%q", "%#v"} {
				if strings.Contains(text, strings.Trim(fmt.Sprintf(form, key), "\"[]{}")) || strings.Contains(text, strings.Trim(fmt.Sprintf(form, key[:4]), "\"[]{}")) {
					t.Errorf("%s of %T shows a key", verb, v)
				}
			}
		}
	}
	object := keysObject("ns", "b", k)
	object.Data[records.PrivateKeyKey] = []byte("almost a key")
	if _, err := decodeKey(object, records.PrivateKeyKey); err == nil || strings.Contains(err.Error(), "almost") {
		t.Errorf("error %v", err)
	}
}

func TestCompleteKeys(t *testing.T) {
	complete := func(server, client *keys) (s, c keys) {
		s, c, err := completeKeys(server, client)
		if err != nil {
			t.Fatal(err)
		}
		return s, c
	}
	s, c := complete(nil, nil)
	if s.preshared() != c.preshared() || s.private() == c.private() {
		t.Fatal("new keys are wrong")
	}
	s2, c2 := complete(&s, &c)
	if s2.private() != s.private() || c2.private() != c.private() || s2.preshared() != s.preshared() {
		t.Error("keys that are there were replaced")
	}
	s3, c3 := complete(nil, &c)
	if c3.private() != c.private() || s3.preshared() != c.preshared() || s3.private() == s.private() {
		t.Error("the side that has keys lost them")
	}
	s4, _ := complete(nil, nil)
	if _, c5 := complete(&s4, &c); c5.preshared() != s4.preshared() {
		t.Error("the server's preshared key does not count")
	}
}
