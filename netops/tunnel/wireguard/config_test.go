package wireguard

import (
	"strings"
	"testing"
	"time"

	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"liqonet.io/liqonet/internal/testbed/parsed"
	"liqonet.io/liqonet/internal/testbed/require"
)

func TestValidate(t *testing.T) {
	require.NoError(t, testConfig().validate())
	for want, change := range map[string]func(*Config){
		"implementation": func(c *Config) { c.Implementation = "magic" },
		"link name":      func(c *Config) { c.Name = strings.Repeat("x", 16) },
		"private key":    func(c *Config) { c.PrivateKey = Secret{} },
		"MTU":            func(c *Config) { c.MTU = 500 },
		"listen port":    func(c *Config) { c.ListenPort, c.Endpoints = 0, nil },
		"public key":     func(c *Config) { c.PublicKey = wgtypes.Key{} },
		"keepalive 1.5s": func(c *Config) { c.KeepAlive = 1500 * time.Millisecond },
		"0.0.0.0/0":      func(c *Config) { c.AllowedIPs = parsed.Prefixes("0.0.0.0/0") },
		"10.0.0.1/8":     func(c *Config) { c.AllowedIPs = parsed.Prefixes("10.0.0.1/8") },
		"fd00::/8":       func(c *Config) { c.AllowedIPs = parsed.Prefixes("fd00::/8") },
	} {
		cfg := testConfig()
		change(&cfg)
		if err := cfg.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
