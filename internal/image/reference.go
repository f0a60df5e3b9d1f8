package image

import (
	"encoding/hex"
	"fmt"
	"os"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"

	"liqonet.io/liqonet/internal/buildinfo"
)

// Repository is where releases publish the image.
const Repository = "liqonet/liqonet"

// DefaultReference names the image that runs in clusters where the user names none: the published one in a
// release; in a development build the one that this very binary gives, by a tag which follows its content, so
// that every new build rolls out. A development build for another system than Linux is a *BinaryError.
func DefaultReference() (string, error) {
	build := buildinfo.Read()
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the running binary: %w", err)
	}
	if !build.Release() && runtime.GOOS != "linux" {
		return "", &BinaryError{Path: self, Reason: "a development build for " + build.Platform}
	}
	return reference(build, self)
}

// Reference is the name by which DefaultReference, in the image's binary, calls the image.
func (i *Image) Reference() (string, error) { return reference(buildinfo.Read(), i.binary) }

// developmentTag is how many digits of the binary's SHA-256 tell development builds apart.
const developmentTag = 12

func reference(build buildinfo.Info, binary string) (string, error) {
	if build.Release() {
		return Repository + ":" + build.Version, nil
	}
	digest, err := sum(binary)
	if err != nil {
		return "", err
	}
	return Repository + ":dev-" + hex.EncodeToString(digest[:])[:developmentTag], nil
}

// IsReference reports whether a text can name an image, by a tag or a digest. Without either the tag is latest.
func IsReference(text string) bool {
	_, err := name.ParseReference(text)
	return err == nil
}

// IsTag reports whether a text can be a name under which to push an image: a digest names what is there already.
func IsTag(text string) bool {
	_, err := name.NewTag(text)
	return err == nil
}
