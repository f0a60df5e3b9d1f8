package image

import (
	"encoding/hex"
	"errors"

	"github.com/google/go-containerregistry/pkg/name"

	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/hint"
)

// unpublished is the repository in the name of images that were never published. No registry can serve it: domain
// invalid is reserved (RFC 2606).
const unpublished = "liqonet.invalid/liqonet"

// DefaultReference names the image that runs in clusters where the user names none: that of the release, in its
// publisher's repository. For any other build it is an error that says how to make one.
func DefaultReference(build buildinfo.Info) (string, error) {
	if !build.Published() {
		return "", hint.With(errors.New("no image for the helpers: this liqoctl is not a published release"),
			"liqoctl image push REGISTRY/NAME:TAG, then --image REGISTRY/NAME:TAG; "+
				"without a registry: liqoctl image save -o FILE, import it on every node, then --image with the name that it prints, without the digest")
	}
	return build.Repository + ":" + build.Version, nil
}

// Reference is the image's name in an archive, unless the user chooses one: in a published release that of
// DefaultReference, else one that follows the binary's content, so that every new build rolls out.
func (i *Image) Reference(build buildinfo.Info) (string, error) { return reference(build, i.binary) }

// developmentTag is how many digits of the binary's SHA-256 tell development builds apart.
const developmentTag = 12

func reference(build buildinfo.Info, binary string) (string, error) {
	if build.Published() {
		return DefaultReference(build)
	}
	digest, err := sum(binary)
	if err != nil {
		return "", err
	}
	return unpublished + ":dev-" + hex.EncodeToString(digest[:])[:developmentTag], nil
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
