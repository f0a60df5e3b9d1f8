package report

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"path"
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

// safe returns a path that stays below its folder and is the same on every system: names come from an API server.
func safe(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_' {
				return r
			}
			return '_'
		}, part)
		if strings.Trim(part, ".") == "" {
			parts[i] = "_"
		}
	}
	return strings.Join(parts, "/")
}
