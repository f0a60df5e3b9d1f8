package ui

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
		"duration":  {func(text string) error { _, err := PositiveDuration(text); return err }, []string{"30s", "1m30s"}, []string{"30", "soon", ""}, errDuration},
		"request":   {RequestTimeout, []string{"0", "30", "30s"}, []string{"-1s", "-1", "soon"}, errDuration},
		"namespace": {Namespace, []string{"liqonet", "net-2"}, []string{"Foo/bar", "a.b", "-a"}, errNamespace},
		"image":     {ImageName, []string{"i", "example.com:5000/liqonet:1", "liqonet@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}, []string{"foo bar", "A", "i@sha256:1"}, ErrImage},
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
