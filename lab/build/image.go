package build

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"liqonet.io/liqonet/lab/cluster"
)

// image is the content of an image of one layer.
type image struct {
	name       string
	files      []imageFile
	entrypoint []string
	search     string // its PATH
}

// imageFile is a folder of an image, a symbolic link, or a copy of a path of this machine: a file, or a folder with its
// content.
type imageFile struct {
	path   string // in the image
	mode   fs.FileMode
	target string // of a link
	source string
}

// workloadPath is the program in its image.
const workloadPath = "bin/workload"

// writeWorkloadImage writes the image of the program workload in dir. It contains only that program.
func writeWorkloadImage(dir string) error {
	return image{
		name: cluster.WorkloadImage,
		files: []imageFile{
			{path: "bin", mode: 0o755},
			{path: "tmp", mode: 0o777 | fs.ModeSticky},
			{path: workloadPath, source: filepath.Join(dir, "workload"), mode: 0o755},
		},
		entrypoint: []string{"/" + workloadPath},
		search:     "/bin",
	}.write(filepath.Join(dir, cluster.WorkloadArchive))
}

// write writes the image as a docker-style archive.
func (i image) write(archive string) error {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		// The layer is read several times, and may be too large for memory.
		r, w := io.Pipe()
		go func() { w.CloseWithError(i.writeLayer(w)) }()
		return r, nil
	}, tarball.WithCompressionLevel(gzip.BestSpeed))
	if err != nil {
		return fmt.Errorf("layer of image %s: %w", i.name, err)
	}
	made, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("assemble image %s: %w", i.name, err)
	}
	config, err := made.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = i.entrypoint
	config.Config.Env = []string{"PATH=" + i.search}
	if made, err = mutate.ConfigFile(made, config); err != nil {
		return fmt.Errorf("configure image %s: %w", i.name, err)
	}
	ref, err := name.NewTag(i.name)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(archive, ref, made)
}

// writeLayer writes the image's only layer.
func (i image) writeLayer(out io.Writer) error {
	w := tar.NewWriter(out)
	for _, f := range i.files {
		if err := f.write(w); err != nil {
			return fmt.Errorf("add %s to image %s: %w", f.path, i.name, err)
		}
	}
	return w.Close()
}

func (f imageFile) write(w *tar.Writer) error {
	switch {
	case f.target != "":
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: f.path, Linkname: f.target, Mode: 0o777})
	case f.source == "":
		return writeFolder(w, f.path, f.mode)
	}
	return filepath.WalkDir(f.source, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(f.source, file)
		if err != nil {
			return err
		}
		inside := path.Join(f.path, filepath.ToSlash(rel))
		if d.IsDir() {
			return writeFolder(w, inside, 0o755)
		}
		return writeFile(w, inside, file, f.mode)
	})
}

func writeFolder(w *tar.Writer, inside string, mode fs.FileMode) error {
	bits := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: inside + "/", Mode: bits})
}

func writeFile(w *tar.Writer, inside, file string, mode fs.FileMode) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if mode == 0 {
		mode = st.Mode().Perm()
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: inside, Mode: int64(mode.Perm()), Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
