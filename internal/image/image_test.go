package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"liqonet.io/liqonet/internal/buildinfo"
	"liqonet.io/liqonet/internal/hint"
	"liqonet.io/liqonet/internal/testbed/assert"
	"liqonet.io/liqonet/internal/testbed/executable"
	"liqonet.io/liqonet/internal/testbed/require"
)

// program is the header of an ELF file, with the fields that determine the platform.
type program struct {
	machine     elf.Machine
	abi         elf.OSABI
	interpreter bool
}

// write writes the program to a file and returns its path.
func (p program) write(t *testing.T) string {
	t.Helper()
	return write(t, executable.Header(p.machine, p.abi, p.interpreter))
}

func write(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "liqoctl")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func build(t *testing.T, path string) *Image {
	t.Helper()
	img, err := Build(path)
	require.NoError(t, err)
	return img
}

func TestImageHoldsOnlyTheBinary(t *testing.T) {
	path := program{machine: elf.EM_AARCH64}.write(t)
	img := build(t, path)
	if got, want := img.Platform(), "linux/arm64"; got != want {
		t.Errorf("platform %s, want %s", got, want)
	}
	config, err := img.image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, "entrypoint", []string{"/liqoctl"}, config.Config.Entrypoint)
	if config.OS != "linux" || config.Architecture != "arm64" {
		t.Errorf("image is for %s/%s", config.OS, config.Architecture)
	}

	files := tar.NewReader(mutate.Extract(img.image))
	header, err := files.Next()
	require.NoError(t, err)
	if header.Name != "liqoctl" || header.Mode != 0o555 || header.Uid != 0 {
		t.Errorf("file %s mode %o uid %d", header.Name, header.Mode, header.Uid)
	}
	got, err := io.ReadAll(files)
	require.NoError(t, err)
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Error("the image's program is not the binary")
	}
	if header, err := files.Next(); err != io.EOF {
		t.Errorf("another file: %v, %v", header, err)
	}
}

func TestReproducible(t *testing.T) {
	archives := make([][]byte, 2)
	for i := range archives {
		// Each time another file, with another modification time and the same content.
		img := build(t, program{machine: elf.EM_X86_64}.write(t))
		var b bytes.Buffer
		require.NoError(t, img.Save(&b, "liqonet/liqonet:test"))
		archives[i] = b.Bytes()
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same binary differ")
	}
}

func TestSave(t *testing.T) {
	img := build(t, program{machine: elf.EM_X86_64}.write(t))
	file := filepath.Join(t.TempDir(), "image.tar")
	out, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, img.Save(out, "liqonet/liqonet:test"))
	require.NoError(t, out.Close())
	tag := name.MustParseReference("liqonet/liqonet:test").(name.Tag)
	read, err := tarball.ImageFromPath(file, &tag)
	require.NoError(t, err)
	assert.NoError(t, validate.Image(read))
	sameConfig(t, img.image, read)
	if err := img.Save(io.Discard, "not a name"); err == nil || !strings.Contains(err.Error(), "not a name") {
		t.Errorf("error %v does not name the reference", err)
	}
}

func sameConfig(t *testing.T, want, got v1.Image) {
	t.Helper()
	w, errW := want.ConfigName()
	g, errG := got.ConfigName()
	require.NoError(t, errors.Join(errW, errG))
	if w != g {
		t.Errorf("config %s, want %s", g, w)
	}
}

// pushed starts a registry, uploads images to it, and returns what the registry stores under their name.
func pushed(t *testing.T, images ...*Image) (digest string, got *remote.Descriptor) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	ref := strings.TrimPrefix(server.URL, "http://") + "/liqonet/liqonet:test"
	digest, err := Push(t.Context(), ref, images...)
	require.NoError(t, err)
	tag, err := name.NewTag(ref)
	require.NoError(t, err)
	if got, err = remote.Get(tag); err != nil {
		t.Fatal(err)
	}
	return digest, got
}

func TestPush(t *testing.T) {
	img := build(t, program{machine: elf.EM_X86_64}.write(t))
	digest, got := pushed(t, img)
	if want, err := img.Digest(); err != nil || digest != want || got.Digest.String() != want {
		t.Errorf("pushed %s, the registry holds %s, the image is %s (%v)", digest, got.Digest, want, err)
	}
}

func TestPushForSeveralPlatforms(t *testing.T) {
	amd64, arm64 := build(t, program{machine: elf.EM_X86_64}.write(t)), build(t, program{machine: elf.EM_AARCH64}.write(t))
	digest, got := pushed(t, amd64, arm64)
	if digest != got.Digest.String() {
		t.Errorf("pushed %s, the registry holds %s", digest, got.Digest)
	}
	index, err := got.ImageIndex()
	require.NoError(t, err)
	assert.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	assert.Equal(t, "platforms", []string{"linux/amd64", "linux/arm64"}, platforms)
}

func TestPushRefuses(t *testing.T) {
	img := build(t, program{machine: elf.EM_X86_64}.write(t))
	_, err := Push(t.Context(), "192.0.2.1/x:y", img, img)
	assert.ErrorContains(t, "push", err, "two images for linux/amd64")
	_, err = Push(t.Context(), "not a name", img)
	assert.ErrorContains(t, "push", err, "not a name")
}

func TestBuildRefuses(t *testing.T) {
	for title, c := range map[string]struct{ path, want string }{
		"Mach-O":      {write(t, []byte("\xcf\xfa\xed\xfe and more of it to read")), "not a Linux executable"},
		"empty":       {write(t, nil), "not a Linux executable"},
		"FreeBSD":     {program{machine: elf.EM_X86_64, abi: elf.ELFOSABI_FREEBSD}.write(t), "another system"},
		"RISC-V":      {program{machine: elf.EM_RISCV}.write(t), "neither amd64 nor arm64"},
		"interpreter": {program{machine: elf.EM_X86_64, interpreter: true}.write(t), "dynamically linked"},
	} {
		_, err := Build(c.path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(hint.Of(err), "--binary") {
			t.Errorf("%s: error %v, hint %q", title, err, hint.Of(err))
		}
	}
	if _, err := Build(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func TestReference(t *testing.T) {
	img := build(t, program{machine: elf.EM_X86_64}.write(t))
	digest, err := img.Digest()
	require.NoError(t, err)
	own := "liqonet.invalid/liqonet:dev-" + digest[len("sha256:"):][:12]
	for _, c := range []struct {
		build buildinfo.Info
		want  string
	}{
		{buildinfo.Info{Version: "v1.2.3", Repository: "registry.example/net/liqonet"}, "registry.example/net/liqonet:v1.2.3"},
		{buildinfo.Info{Version: "dev"}, own},
		{buildinfo.Info{Version: "v1.2.3"}, own}, // by `go install`
		{buildinfo.Info{Version: "dev", Repository: "registry.example/liqonet"}, own},
	} {
		got, err := img.Reference(c.build)
		if err != nil || got != c.want {
			t.Errorf("%+v: %s (%v), want %s", c.build, got, err, c.want)
		}
		_, err = name.NewTag(got)
		assert.NoError(t, err)
	}
}

// TestOnlyPublishersHaveADefaultImage: a build without a publisher has no default image name. The owner of a default
// name could run code on every node.
func TestOnlyPublishersHaveADefaultImage(t *testing.T) {
	got, err := DefaultReference(buildinfo.Info{Version: "v1.2.3", Repository: "registry.example/liqonet"})
	if err != nil || got != "registry.example/liqonet:v1.2.3" {
		t.Errorf("a publisher's release: %s, %v", got, err)
	}
	for _, build := range []buildinfo.Info{
		buildinfo.Read(), {}, {Version: "dev"}, {Version: "v1.2.3"}, {Version: "dev", Repository: "registry.example/liqonet"},
	} {
		got, err := DefaultReference(build)
		if err == nil || got != "" {
			t.Errorf("%+v: default image %q, %v", build, got, err)
			continue
		}
		for _, word := range []string{"liqoctl image push", "liqoctl image save", "--image"} {
			if !strings.Contains(hint.Of(err), word) {
				t.Errorf("hint %q, want one with %q", hint.Of(err), word)
			}
		}
	}
}
