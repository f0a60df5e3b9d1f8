// Package buildinfo tells which build of liqoctl this is.
package buildinfo

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
)

// Development is the version of a build that is no release.
const Development = "dev"

// version is set by the linker in releases: -X liqonet.io/liqonet/internal/buildinfo.version=v1.2.3.
var version string

// Info describes a build.
type Info struct {
	Version  string `json:"version"`          // such as "v1.2.3"; Development when unknown
	Commit   string `json:"commit,omitempty"` // "" when the build did not record it
	Go       string `json:"go"`               // such as "go1.26.8"
	Platform string `json:"platform"`         // such as "linux/amd64"
}

// release matches the tags that releases bear. Pseudo-versions, which name a commit, are none.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// Read describes the running binary.
func Read() Info {
	info := Info{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.complete(build)
	}
	info.Version = cmp.Or(info.Version, Development)
	return info
}

// complete adds what the Go toolchain recorded: the module's version where a release was installed by
// `go install`, and the commit.
func (i *Info) complete(build *debug.BuildInfo) {
	if i.Version == "" && release.MatchString(build.Main.Version) {
		i.Version = build.Main.Version
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			i.Commit = s.Value
		}
	}
}

// Release reports whether the build is a release, whose image is published under its version.
func (i Info) Release() bool { return release.MatchString(i.Version) }
