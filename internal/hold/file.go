package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-io/weir/internal/durable"
	"github.com/weir-io/weir/internal/state"
)

// A File is a drop-in of a unit that a plan writes, or if its text is empty removes.
type File struct {
	Path string
	Text string
}

// A journalFile is what a drop-in was before a change, and is to be.
type journalFile struct {
	Path   string `json:"path"`
	New    string `json:"new"`    // where it is written before it takes its name
	Before string `json:"before"` // empty: there was none
	After  string `json:"after"`
}

func journalOfFile(f File) (*journalFile, error) {
	before, err := readFile(f.Path)
	return &journalFile{Path: f.Path, New: fmt.Sprintf("%s.%d.new", f.Path, os.Getpid()), Before: before, After: f.Text}, err
}

// readFile returns a drop-in's text; none is empty.
func readFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read drop-in: %w", err)
	}
	return string(text), nil
}

// put gives the file a text: all of it or nothing, also if the machine stops half way.
// systemd reads no file whose name does not end in .conf.
func (f journalFile) put(text string) error {
	dir := filepath.Dir(f.Path)
	if text == "" {
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove drop-in: %w", err)
		}
		_ = os.Remove(dir) // if nothing else is in it
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write drop-in: %w", err)
	}
	if err := durable.Replace(f.Path, f.New, text, 0o644); err != nil {
		return fmt.Errorf("write drop-in: %w", errors.Join(err, f.discard()))
	}
	return nil
}

// discard removes what was not finished.
func (f journalFile) discard() error {
	if err := os.Remove(f.New); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(f.Path)) // if nothing else is in it
	return nil
}

// apply writes the file and has systemd read it.
func (f journalFile) apply(ctx context.Context, connect dialer) error {
	if err := f.put(f.After); err != nil {
		return err
	}
	return reload(ctx, connect)
}

// revert puts the file back to what it was, unless somebody has changed it since.
func (f journalFile) revert(connect dialer) error {
	if err := f.discard(); err != nil {
		return fmt.Errorf("take back half-done change: %w", err)
	}
	now, err := readFile(f.Path)
	if err != nil {
		return fmt.Errorf("take back half-done change: %w", err)
	}
	if now != f.After || now == f.Before {
		return nil
	}
	if err := f.put(f.Before); err != nil {
		return fmt.Errorf("take back half-done change: %w", err)
	}
	// The file is as it was. systemd has read it or not: one that cannot be reached has
	// not kept what it read, and is not waited for.
	err = reload(context.Background(), connect)
	if errors.Is(err, state.ErrKeep) {
		return nil
	}
	return err
}

// RemoveFile removes a drop-in, and has systemd read its units again.
func (h Holder) RemoveFile(ctx context.Context, path string) error {
	if err := (journalFile{Path: path}).put(""); err != nil {
		return err
	}
	return reload(ctx, h.dial)
}

// reload has systemd read its units again.
func reload(ctx context.Context, connect dialer) error {
	ctx, cancel := context.WithTimeout(ctx, unitTimeout)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", state.ErrKeep, err)
	}
	defer conn.Close()
	return conn.Reload(ctx)
}
