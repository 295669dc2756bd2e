package payload

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Unpack extracts a tar, from a file or a disk whose rest is zero, below dir. A
// tar that ends in the middle gives an error, and what came before is there.
func Unpack(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = extract(r, h, dir)
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", path, err)
		}
	}
}

func extract(r io.Reader, h *tar.Header, dir string) error {
	if !filepath.IsLocal(h.Name) {
		return fmt.Errorf("name %q leaves the folder", h.Name)
	}
	to := filepath.Join(dir, h.Name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeSymlink {
		return os.Symlink(h.Linkname, to)
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, os.FileMode(h.Mode).Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
