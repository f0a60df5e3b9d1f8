package setting

import (
	"errors"
	"testing"
)

func TestChecks(t *testing.T) {
	for name, c := range map[string]struct {
		check     func(string) error
		taken     []string
		refused   []string
		otherwise error
	}{
		"port":        {reads(Port), []string{"1", "65535"}, []string{"", "0", "-1", "65536", "http", "1.5"}, errPort},
		"port or any": {reads(PortOrAny), []string{"0", "1"}, []string{"", "-1", "65536"}, errPort},
		"packet size": {reads(PacketSize), []string{"0", "576", "65535"}, []string{"", "1", "575", "65536", "-1400", "1400B"}, errSize},
		"address":     {reads(address), []string{"192.0.2.1", "10.0.0.1", "2001:db8::1"}, []string{"127.0.0.1", "::1", "0.0.0.0", "224.0.0.1", "169.254.1.1", "fe80::1%eth0", "lb"}, errAddress},
		"host":        {reads(HostOrAny), []string{"192.0.2.1", "gateway", "GW.example.com", "gw.example.com."}, []string{"::1", "192.0.2.256", "192.0.2", "foo_bar..", "a..b", "-a", "gw:51840"}, errHost},
		"name":        {reads(NameOrNone), []string{"", "proxy", "a.b-1"}, []string{"A", "a/b", "a_b", "-a", "a."}, errName},
		"host name":   {reads(HostNameOrNone), []string{"", "gw.example.com"}, []string{"192.0.2.1", "2001:db8::1", "GW.example.com", "gw.example.com.", "*.example.com", "gw:443", "127.1"}, errHostName},
		"proxy": {reads(ProxyOrNone), []string{"", "http://proxy.example.com:3128", "https://192.0.2.1:443", "http://[2001:db8::1]:1"}, []string{
			"proxy:3128", "http://proxy", "http://proxy:0", "http://proxy:65536", "http://proxy:x", "http://proxy:3128/", "http://proxy:3128?a", "http://proxy:3128#a",
			"http://user:pw@proxy:3128", "http://127.0.0.1:3128", "socks5://proxy:1080", "HTTP://proxy:3128", "http://pro xy:3128"}, errProxy},
		"host in another form of an address": {reads(HostOrAny), []string{"0x7f000001.example.com", "x1", "1x", "0y7f", "0xg", "7f000001"}, []string{
			"2130706433", "99999999999999999999", "017700000001", "0x7f000001", "0X7F000001", "0x", "0177.0.0.1", "0x7f.0.0.1", "127.0.0.0x1", "127.0x1",
			"gw.0x1", "192.0.2.01", "192.0.2.1.", "0x7f000001.", "::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:192.0.2.1", "[2001:db8::1]",
			".", "..", ".gw", "gw..", "gw.example..", "gw .example", "gw.example\n", "127。0。0。1", "①27.0.0.1"}, errHost},
	} {
		for _, text := range c.taken {
			if err := c.check(text); err != nil {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
		for _, text := range c.refused {
			if err := c.check(text); !errors.Is(err, c.otherwise) {
				t.Errorf("%s %q: error %v, want %v", name, text, err, c.otherwise)
			}
		}
	}
}

// reads converts a parser to a check.
func reads[T any](read func(string) (T, error)) func(string) error {
	return func(text string) error {
		_, err := read(text)
		return err
	}
}
