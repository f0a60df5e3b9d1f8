package wireguard

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/require"
	"liqonet.io/liqonet/netops/tunnel"
)

// testKey returns a key with recognisable text; WireGuard's clamping does not change it.
func testKey(b byte) wgtypes.Key {
	key := wgtypes.Key(bytes.Repeat([]byte{b}, wgtypes.KeyLen))
	key[0], key[31] = key[0]&248, key[31]&127|64
	return key
}

func testConfig() Config {
	return Config{
		Config: tunnel.Config{
			Implementation: Userspace,
			Name:           "lqn-tunnel",
			ListenPort:     51840,
			MTU:            1440,
			AllowedIPs:     []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("169.254.18.2/32")},
			Endpoints:      []string{"192.0.2.1:51840"},
			KeepAlive:      25 * time.Second,
		},
		PrivateKey:   NewSecret(testKey(0xa1)),
		PresharedKey: NewSecret(testKey(0xb2)),
		PublicKey:    testKey(0xc3),
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	cfg := testConfig()
	type holder struct{ hidden Config }
	shown := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		for name, value := range map[string]any{
			"Config": cfg, "*Config": &cfg, "Secret": cfg.PrivateKey, "hidden": holder{cfg}, "*hidden": &holder{cfg},
			"slice": []Secret{cfg.PrivateKey}, "map": map[string]Secret{"key": cfg.PresharedKey},
		} {
			shown[name+" "+verb] = fmt.Sprintf(verb, value)
		}
	}
	var text, structured bytes.Buffer
	for _, log := range []*slog.Logger{
		slog.New(slog.NewTextHandler(&text, nil)), slog.New(slog.NewJSONHandler(&structured, nil)),
	} {
		log.Info("open", "config", cfg, "pointer", &cfg, "key", cfg.PrivateKey, "group", slog.GroupValue(slog.Any("k", cfg.PresharedKey)))
	}
	shown["slog text"], shown["slog JSON"] = text.String(), structured.String()
	marshalled, err := json.Marshal(cfg)
	require.NoError(t, err)
	shown["JSON"] = string(marshalled)
	broken := cfg
	broken.MTU = 0
	shown["error"] = fmt.Sprint(broken.validate())
	_, err = parseSecret(testKey(0xa1).String() + "x")
	shown["parse error"] = fmt.Sprint(err)
	_, err = decodeUAPI("private_key=" + strings.Repeat("a1", 31) + "\n")
	shown["UAPI error"] = fmt.Sprint(err)

	for where, s := range shown {
		for _, key := range []wgtypes.Key{testKey(0xa1), testKey(0xb2)} {
			middle := key[4:12] // any part of the key
			for _, form := range []string{
				base64.StdEncoding.EncodeToString(key[3:27]), hex.EncodeToString(middle),
				strings.Trim(fmt.Sprintf("%v", middle), "[]"), strings.Trim(fmt.Sprintf("%#v", middle), "[]byte{}"),
			} {
				if strings.Contains(strings.ToLower(s), strings.ToLower(form)) {
					t.Errorf("%s shows a key: %s", where, s)
				}
			}
		}
	}
	if s := shown["Config %+v"]; !strings.Contains(s, "PrivateKey:"+redacted) {
		t.Errorf("configuration prints as %s", s)
	}
}

func TestParseSecret(t *testing.T) {
	key := testKey(0xa1)
	s, err := parseSecret(key.String())
	require.NoError(t, err)
	if s.reveal() != key || s.IsZero() || s.PublicKey() != key.PublicKey() {
		t.Error("the parsed key is another one")
	}
	if none := NewSecret(wgtypes.Key{}); !none.IsZero() || none.reveal() == key || none.PublicKey() != (wgtypes.Key{}) {
		t.Error("a key of zeros is taken for one")
	}
	for _, text := range []string{"", "short", key.String()[:40]} {
		if _, err := parseSecret(text); err == nil {
			t.Errorf("parseSecret(%q) accepted", text)
		}
	}
}
