package build

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"liqonet.io/liqonet/lab/cluster"
)

// workloadPath is the program in its image.
const workloadPath = "bin/workload"

// writeWorkloadImage makes the image of the program workload in dir, of that program alone.
func writeWorkloadImage(dir string) error {
	program, err := os.ReadFile(filepath.Join(dir, "workload"))
	if err != nil {
		return err
	}
	files, err := workloadFiles(program)
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files)), nil
	})
	if err != nil {
		return fmt.Errorf("layer of image %s: %w", cluster.WorkloadImage, err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("assemble image %s: %w", cluster.WorkloadImage, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = []string{"/" + workloadPath}
	config.Config.Env = []string{"PATH=/bin"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return fmt.Errorf("configure image %s: %w", cluster.WorkloadImage, err)
	}
	ref, err := name.NewTag(cluster.WorkloadImage)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(filepath.Join(dir, cluster.WorkloadArchive), ref, image)
}

// workloadFiles is the image's only layer: the program and a folder for temporary files.
func workloadFiles(program []byte) ([]byte, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	for _, h := range []tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeReg, Name: workloadPath, Mode: 0o755, Size: int64(len(program))},
	} {
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write(program); err != nil {
		return nil, err
	}
	return files.Bytes(), w.Close()
}
