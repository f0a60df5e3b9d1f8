// Package image builds liqonet's container image from a liqoctl binary. The image contains only that binary, /liqoctl.
// The package needs no container runtime.
//
// The same binary always results in the same digest, independent of time and machine.
package image

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Entrypoint is the program in the image.
const Entrypoint = "/liqoctl"

// created is the creation time of the image and of its file: a constant, so that the digest is reproducible.
var created = time.Unix(0, 0).UTC()

// Image is a container image that is being built.
type Image struct {
	platform v1.Platform
	image    v1.Image
}

// Build builds the image of a binary; an empty path is the running binary. A file that cannot run in the image is an
// error.
func Build(path string) (*Image, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find the running binary: %w", err)
		}
		path = self
	}
	platform, err := inspect(path)
	if err != nil {
		return nil, err
	}
	// Compression takes most of the time, and nodes store the layer unpacked: the fastest level is sufficient.
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return openLayer(path) },
		tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("pack %s: %w", path, err)
	}
	img, err := assemble(layer, platform)
	if err != nil {
		return nil, fmt.Errorf("assemble image of %s: %w", path, err)
	}
	return &Image{platform: platform, image: img}, nil
}

func assemble(layer v1.Layer, platform v1.Platform) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "liqoctl image"},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: created}
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Config.Entrypoint = []string{Entrypoint}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.title":    "liqonet",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
	return mutate.ConfigFile(img, config)
}

// openLayer streams the tar archive that contains the binary.
func openLayer(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, w := io.Pipe()
	go func() {
		defer f.Close()
		w.CloseWithError(writeLayer(w, f, info.Size()))
	}()
	return r, nil
}

func writeLayer(w io.Writer, binary io.Reader, size int64) error {
	archive := tar.NewWriter(w)
	header := &tar.Header{Name: Entrypoint[1:], Mode: 0o555, Size: size, ModTime: created, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.Copy(archive, binary); err != nil {
		return err
	}
	return archive.Close()
}

// Platform returns the platform of the image, such as "linux/amd64".
func (i *Image) Platform() string { return i.platform.String() }

// Digest returns the digest of the image's manifest, such as "sha256:4f…".
func (i *Image) Digest() (string, error) {
	digest, err := i.image.Digest()
	if err != nil {
		return "", fmt.Errorf("digest of image: %w", err)
	}
	return digest.String(), nil
}

// Save writes the image as an archive for `ctr images import` and `docker load`, under the name ref.
func (i *Image) Save(w io.Writer, ref string) error {
	tag, err := name.NewTag(ref)
	if err != nil {
		return fmt.Errorf("name image %q: %w", ref, err)
	}
	if err := tarball.Write(tag, i.image, w); err != nil {
		return fmt.Errorf("write image %s: %w", ref, err)
	}
	return nil
}
