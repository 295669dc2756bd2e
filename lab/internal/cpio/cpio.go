// Package cpio writes archives in the "newc" format, which the kernel unpacks as
// an initramfs (Documentation/driver-api/early-userspace/buffer-format.rst). It
// writes only what an initramfs of the lab needs: folders, files and links.
package cpio

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	typeDir  = 0o040000
	typeFile = 0o100000
	typeLink = 0o120000
)

// WriteTree writes everything below dir to w, owned by root, with the contents
// of files as they are.
func WriteTree(w io.Writer, dir string) error {
	a := &archive{w: w}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		return a.add(path, name, d)
	})
	if err == nil {
		err = a.entry("TRAILER!!!", 0, 0)
	}
	if err != nil {
		return fmt.Errorf("write cpio of %s: %w", dir, err)
	}
	return nil
}

type archive struct {
	w       io.Writer
	inode   int
	written int64
}

func (a *archive) add(path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	perm := uint32(info.Mode().Perm())
	switch info.Mode().Type() {
	case fs.ModeDir:
		return a.entry(name, typeDir|perm, 0)
	case fs.ModeSymlink:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if err := a.entry(name, typeLink|0o777, int64(len(to))); err != nil {
			return err
		}
		if err := a.write([]byte(to)); err != nil {
			return err
		}
		return a.pad()
	case 0:
		return a.file(path, name, typeFile|perm, info.Size())
	}
	return fmt.Errorf("%s: neither file, folder nor link", name)
}

func (a *archive) file(path, name string, mode uint32, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := a.entry(name, mode, size); err != nil {
		return err
	}
	n, err := io.Copy(a.w, f)
	a.written += n
	if err != nil {
		return err
	}
	if n != size {
		return fmt.Errorf("%s: changed while it was read", name)
	}
	return a.pad()
}

// entry writes a header: magic, then thirteen numbers of eight hex digits.
func (a *archive) entry(name string, mode uint32, size int64) error {
	a.inode++
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	if err := a.write([]byte(header)); err != nil {
		return err
	}
	return a.pad()
}

func (a *archive) write(p []byte) error {
	n, err := a.w.Write(p)
	a.written += int64(n)
	return err
}

func (a *archive) pad() error {
	if rest := a.written % 4; rest != 0 {
		return a.write(make([]byte, 4-rest))
	}
	return nil
}
