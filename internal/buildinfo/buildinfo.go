// Package buildinfo has the version of this build of liqoctl.
package buildinfo

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
)

// Development is the version of a build that is no release.
const Development = "dev"

// The linker sets these in releases, as in -X liqonet.io/liqonet/internal/buildinfo.version=v1.2.3. repository is the
// publisher's, with the release's image. It has no default: anybody could register a name from the source.
var version, repository string

// Info describes a build.
type Info struct {
	Version  string `json:"version"`          // such as "v1.2.3"; Development when unknown
	Commit   string `json:"commit,omitempty"` // "" when the build did not record it
	Go       string `json:"go"`               // such as "go1.26.8"
	Platform string `json:"platform"`         // such as "linux/amd64"
	// Repository is where the publisher keeps the image of a release; "" in any other build.
	Repository string `json:"repository,omitempty"`
}

// release matches the tags that releases bear. Pseudo-versions, which name a commit, are none.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// Read describes the running binary.
func Read() Info {
	info := Info{Version: version, Repository: repository, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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

// Release reports whether the build is a release.
func (i Info) Release() bool { return release.MatchString(i.Version) }

// Published reports whether the build is a release with a published image: Repository:Version.
func (i Info) Published() bool { return i.Release() && i.Repository != "" }
