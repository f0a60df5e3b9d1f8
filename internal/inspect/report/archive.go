package report

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"path"
	"regexp"
	"strings"
	"time"
)

// archive is the list of files, in the order in which they were added.
type archive []file

type file struct{ name, text string }

// write writes a compressed tar file with regular files only, all below one folder.
func (a archive) write(w io.Writer) error {
	compressed := gzip.NewWriter(w)
	out := tar.NewWriter(compressed)
	for _, f := range a {
		err := out.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join("liqonet-report", safe(f.name)), Mode: 0o600, Size: int64(len(f.text)), ModTime: time.Now(),
		})
		if err == nil {
			_, err = io.WriteString(out, f.text)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(out.Close(), compressed.Close())
}

// foreign is a character that some systems do not allow in the name of a file.
var foreign = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// safe returns a path that stays below its folder and is the same on every system: names come from an API server.
func safe(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = foreign.ReplaceAllString(part, "_")
		if strings.Trim(part, ".") == "" {
			parts[i] = "_"
		}
	}
	return strings.Join(parts, "/")
}
