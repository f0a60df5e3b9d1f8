package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push uploads an image, or images for several platforms under one name, to the registry in ref. It uses HTTPS (plain
// HTTP to the local host) and the credentials of the Docker configuration, and returns the digest.
func Push(ctx context.Context, ref string, images ...*Image) (digest string, err error) {
	tag, err := name.NewTag(ref)
	if err != nil {
		return "", fmt.Errorf("name image %q: %w", ref, err)
	}
	content, err := merge(images)
	if err != nil {
		return "", fmt.Errorf("push image %s: %w", ref, err)
	}
	if err := remote.Push(tag, content, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push image %s: %w", ref, err)
	}
	hash, err := content.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of image %s: %w", ref, err)
	}
	return hash.String(), nil
}

// manifest is an image or an index of images.
type manifest interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}

// merge returns the only image, or an index of all images.
func merge(images []*Image) (manifest, error) {
	if len(images) == 1 {
		return images[0].image, nil
	}
	seen := make(map[string]bool)
	var entries []mutate.IndexAddendum
	for _, i := range images {
		if seen[i.Platform()] {
			return nil, fmt.Errorf("two images for %s", i.Platform())
		}
		seen[i.Platform()] = true
		platform := i.platform
		entries = append(entries, mutate.IndexAddendum{Add: i.image, Descriptor: v1.Descriptor{Platform: &platform}})
	}
	return mutate.AppendManifests(empty.Index, entries...), nil
}
