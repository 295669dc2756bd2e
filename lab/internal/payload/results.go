package payload

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/weir-io/weir/lab/internal/guest"
)

// ErrNotWhole means that the guest ended before its results were written.
var ErrNotWhole = errors.New("results are not whole")

// Pack writes the files below dir as a tar to path, a file or a disk. EndFile
// goes last.
func Pack(path, dir string, end End) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("pack results: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := tar.NewWriter(f)
	walk := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return addFile(w, name, path)
	}
	if err := filepath.WalkDir(dir, walk); err != nil {
		return fmt.Errorf("pack results: %w", err)
	}
	data, err := json.Marshal(end)
	if err != nil {
		return fmt.Errorf("pack results: %w", err)
	}
	if err := addBytes(w, EndFile, data); err != nil {
		return fmt.Errorf("pack results: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack results: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("pack results: %w", err)
	}
	return nil
}

// Read collects a guest's results from the folder they were unpacked to. When
// they are not whole it gives what there is, with ErrNotWhole.
func Read(dir string, suites []guest.Suite) (guest.Result, error) {
	var r guest.Result
	whole := true
	for _, s := range suites {
		o := guest.Output{Package: s.Package, Exit: -1}
		log, err := os.ReadFile(filepath.Join(dir, OutputFile(s.Name)))
		if err != nil {
			whole = false
		}
		o.Log = log
		var status Status
		if err := readJSON(filepath.Join(dir, StatusFile(s.Name)), &status); err == nil {
			o.Exit, o.Seconds, o.Ended = status.Exit, status.Seconds, true
		} else {
			whole = false
		}
		r.Outputs = append(r.Outputs, o)
	}
	var end End
	if err := readJSON(filepath.Join(dir, EndFile), &end); err != nil || !whole {
		return r, ErrNotWhole
	}
	r.Boot = time.Duration(end.FirstTestSeconds * float64(time.Second))
	return r, nil
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}
