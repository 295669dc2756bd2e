// Package payload packs what a guest runs into one tar, which guests get as a
// read-only disk named "job", and unpacks what they bring back on a disk named
// "out". The same tar serves every guest of a run.
//
// In the tar: job.json, the programs in bin, and for each suite suites/NAME/test with its
// testdata beside it.
package payload

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-io/weir/lab/internal/guest"
)

// JobFile is in the tar and holds an Order; the kernel's command line holds what
// differs from guest to guest.
const JobFile = "job.json"

// Order is what to run.
type Order struct {
	Suites []guest.Suite `json:"suites"`
	Env    []string      `json:"env"` // NAME=VALUE, for the tests
}

// EndFile is the last file of a guest's results: without it they are not whole.
const EndFile = "end.json"

// OutputFile is one suite's log in the results; its status is beside it.
func OutputFile(suite string) string { return "suites/" + suite + ".log" }

// StatusFile holds a Status.
func StatusFile(suite string) string { return "suites/" + suite + ".json" }

// Status is how a suite ended.
type Status struct {
	Exit    int     `json:"exit"`
	Seconds float64 `json:"seconds"`
}

// End closes the results.
type End struct {
	FirstTestSeconds float64 `json:"first_test_seconds"` // uptime when the first suite began
}

// Write packs the job, with the programs that tests call, into a tar at path.
func Write(ctx context.Context, path string, programs []string, order Order) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
	}()
	w := tar.NewWriter(f)
	job, err := json.Marshal(order)
	if err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	if err := addBytes(w, JobFile, job); err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	for _, program := range programs {
		if err := addFile(w, "bin/"+filepath.Base(program), program); err != nil {
			return fmt.Errorf("write payload: %w", err)
		}
	}
	for _, s := range order.Suites {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("write payload: %w", err)
		}
		if err := addSuite(w, s); err != nil {
			return fmt.Errorf("write payload of %s: %w", s.Package, err)
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	return pad(f)
}

// pad rounds the file up to whole MiB, as a disk has them.
func pad(f *os.File) error {
	const unit = 1 << 20
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	if err := f.Truncate((info.Size() + unit - 1) / unit * unit); err != nil {
		return fmt.Errorf("write payload: %w", err)
	}
	return nil
}

func addSuite(w *tar.Writer, s guest.Suite) error {
	base := "suites/" + s.Name + "/"
	if err := addFile(w, base+"test", s.Binary); err != nil {
		return err
	}
	data := filepath.Join(s.Dir, "testdata")
	return filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == data {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.Dir, path)
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: base + name, Linkname: to})
		}
		return addFile(w, base+name, path)
	})
}

func addFile(w *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

func addBytes(w *tar.Writer, name string, data []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
