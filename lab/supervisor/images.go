package supervisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	kube "liqonet.io/liqonet/lab/cluster"
	nodes "liqonet.io/liqonet/lab/node"
)

// archiveSuffix ends the name of a complete image archive.
const archiveSuffix = ".tar"

// images lists the archives that were loaded, in the order in which they were: a later one may bear a name of
// an earlier one.
func (s *Supervisor) images() ([]string, error) {
	entries, err := os.ReadDir(s.paths.Images()) // sorted by name
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), archiveSuffix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// load keeps an image archive for nodes to come and imports it into those that run.
func (s *Supervisor) load(ctx context.Context, archive io.Reader) error {
	name, err := s.keepArchive(archive)
	if err != nil {
		return fmt.Errorf("keep image archive: %w", err)
	}
	var all errgroup.Group
	for _, c := range s.clusters {
		for _, n := range c.list() {
			if pid, ok := n.running(); ok {
				all.Go(func() error { return s.importImage(ctx, n, pid, name) })
			}
		}
	}
	if err := all.Wait(); err != nil {
		// A node that starts later would stumble over it.
		return errors.Join(err, os.Remove(filepath.Join(s.paths.Images(), name)))
	}
	return nil
}

func (s *Supervisor) keepArchive(archive io.Reader) (string, error) {
	loaded, err := s.images()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(s.paths.Images(), "unfinished-*")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(f, archive); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	name := fmt.Sprintf("%06d%s", len(loaded)+1, archiveSuffix)
	return name, os.Rename(f.Name(), filepath.Join(s.paths.Images(), name))
}

func (s *Supervisor) importImage(ctx context.Context, n *node, pid int, name string) error {
	args := []string{nodes.EnterCommand, strconv.Itoa(pid), "--"}
	args = append(args, kube.ImportCommand(filepath.Join(nodes.ImagesDir, name))...)
	cmd := exec.CommandContext(ctx, filepath.Join(s.tools, "lab"), args...) //nolint:gosec // no shell
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := s.spawner.Start(cmd, nil); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("import image in node %s: %w: %s", n.Name(), err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
