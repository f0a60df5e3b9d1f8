package buildinfo

import (
	"runtime/debug"
	"testing"
)

func TestRelease(t *testing.T) {
	for version, want := range map[string]bool{
		"v1.2.3":                             true,
		"v0.1.0-rc.1":                        true,
		"dev":                                false,
		"":                                   false,
		"1.2.3":                              false,
		"v1.2.3+dirty":                       false,
		"v0.0.0-20261121101400-5c4a8d7cc1f0": false,
	} {
		if got := (Info{Version: version}).Release(); got != want {
			t.Errorf("Release of %q = %t, want %t", version, got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	build := &debug.BuildInfo{
		Main:     debug.Module{Version: "v1.0.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "5c4a8d7"}},
	}
	for _, c := range []struct{ linked, module, want string }{
		{"", "v1.0.0", "v1.0.0"},
		{"v2.0.0", "v1.0.0", "v2.0.0"}, // the linker's word counts more
		{"", "(devel)", ""},
		{"", "v0.0.0-20261121101400-5c4a8d7cc1f0+dirty", ""},
	} {
		build.Main.Version = c.module
		info := Info{Version: c.linked}
		info.complete(build)
		if info.Version != c.want || info.Commit != "5c4a8d7" {
			t.Errorf("linked %q, module %q: got %+v, want version %q", c.linked, c.module, info, c.want)
		}
	}
}

func TestReadHasAVersion(t *testing.T) {
	info := Read()
	if info.Version == "" || info.Go == "" || info.Platform == "" {
		t.Errorf("incomplete: %+v", info)
	}
}
