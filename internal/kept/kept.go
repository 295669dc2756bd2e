// Package kept has the limits that weir keeps for targets that nobody else keeps any for:
// a container whose group systemd does not make. weir restore sets them again.
package kept

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/weir-io/weir/internal/limit"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is where the records are, below the host's root.
const Dir = "/var/lib/weir/limits"

const suffix = ".json"

// A Record is what is kept for one target.
type Record struct {
	Target  string        `json:"target"`         // by the name that its owner has for good: docker:WHOLE-ID
	Name    string        `json:"name"`           // as the user spelled it
	Host    string        `json:"host,omitempty"` // the owner's socket, if it is not the usual one (DOCKER_HOST and its like)
	Entries []limit.Asked `json:"limits"`
}

// Path is where a target's record is, below the host's root.
func Path(target string) string { return filepath.Join(Dir, url.QueryEscape(target)+suffix) }

// Text is a record's file; of one without limits, which is to go, empty.
func (r Record) Text() (string, error) {
	if len(r.Entries) == 0 {
		return "", nil
	}
	data, err := json.Marshal(r)
	return string(data) + "\n", err
}

// Lock keeps other weirs from changing records until unlock is called. Without make and a
// directory there is nothing to change, nor for who may not read it.
func Lock(root string, make bool) (unlock func(), err error) {
	dir := filepath.Join(root, filepath.Dir(Dir))
	if make {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("keep limits: %w", err)
		}
	}
	f, err := os.Open(dir)
	if !make && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return func() {}, nil
	}
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("keep limits: lock %s: %w", dir, err)
	}
	return func() { _ = f.Close() }, nil
}

// Read reads a target's record; without one it has no limits.
func Read(root, target string) (Record, error) {
	r, err := read(filepath.Join(root, Path(target)))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{Target: target}, nil
	}
	return r, err
}

// List reads all records, in the order of their files. One that cannot be read is an
// error beside the others.
func List(root string) ([]Record, error) {
	dir := filepath.Join(root, Dir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list kept limits: %w", err)
	}
	var all []Record
	var errs []error
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		r, err := read(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has just been lifted
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, r)
	}
	return all, errors.Join(errs...)
}

func read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Record{}, fmt.Errorf("read kept limits: %w", err)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("read kept limits %s: %w; move it away", path, err)
	}
	if filepath.Base(Path(r.Target)) != filepath.Base(path) {
		return Record{}, fmt.Errorf("read kept limits %s: it is %q's; move it away", path, r.Target)
	}
	return r, nil
}
