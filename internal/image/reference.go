package image

import (
	"errors"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/hint"
)

// unpublished is the repository in the name of images that were never published. No registry can serve it: domain
// invalid is reserved (RFC 2606).
const unpublished = "liqonet.invalid/liqonet"

// DefaultReference returns the image to run in clusters if the user does not set one: that of the release, in its
// publisher's repository. For any other build it returns an error that explains how to build one.
func DefaultReference(build buildinfo.Info) (string, error) {
	if !build.Published() {
		return "", hint.With(errors.New("no image for the helpers: this liqoctl is not a published release"),
			"liqoctl image push REGISTRY/NAME:TAG, then --image REGISTRY/NAME:TAG; "+
				"without a registry: liqoctl image save -o FILE, import it on every node, then --image with the name that it prints, without the digest")
	}
	return build.Repository + ":" + build.Version, nil
}

// Reference returns the image's name in an archive if the user does not set one: for a published release that of
// DefaultReference, else a name derived from the image's digest, so that every new build rolls out.
func (i *Image) Reference(build buildinfo.Info) (string, error) {
	if build.Published() {
		return DefaultReference(build)
	}
	digest, err := i.Digest()
	if err != nil {
		return "", err
	}
	return unpublished + ":dev-" + strings.TrimPrefix(digest, "sha256:")[:developmentTag], nil
}

// developmentTag is the number of digits of the image's digest in the tag of development builds.
const developmentTag = 12

// IsReference reports whether a text is a valid image name, with a tag or a digest. Without either, the tag is latest.
func IsReference(text string) bool {
	_, err := name.ParseReference(text)
	return err == nil
}

// IsTag reports whether a text is a valid name for pushing an image. A name with a digest is not: it refers to an
// existing image.
func IsTag(text string) bool {
	_, err := name.NewTag(text)
	return err == nil
}
