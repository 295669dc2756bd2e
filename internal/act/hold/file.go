package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/state"
)

// A File is what a plan writes to save limits, or removes if its text is empty: a drop-in of a
// unit, or a record of weir.
type File struct {
	Path string
	Text string
	Own  bool // weir's record, which systemd does not read
}

// A journalFile is a file's content before a change, and after it.
type journalFile struct {
	Path   string `json:"path"`
	New    string `json:"new"`    // where it is written before it takes its name
	Before string `json:"before"` // empty: there was none
	After  string `json:"after"`
	Own    bool   `json:"own,omitempty"`
}

func journalOfFile(f File) (*journalFile, error) {
	j := journalFile{Path: f.Path, New: fmt.Sprintf("%s.%d.new", f.Path, os.Getpid()), After: f.Text, Own: f.Own}
	var err error
	j.Before, err = j.read()
	return &j, err
}

// fileMost bounds a drop-in, in bytes.
const fileMost = 1 << 20

// folder is the directory of a record.
func (f journalFile) folder() state.Folder {
	return state.Folder{Dir: filepath.Dir(f.Path), Mode: 0o755}
}

// read returns the file's text, which is empty if there is no file, or one in the place of a record
// that cannot be one: nobody wants that back.
func (f journalFile) read() (string, error) {
	var text []byte
	var err error
	if f.Own {
		text, err = f.folder().Read(filepath.Base(f.Path))
	} else {
		text, err = peek.Regular(f.Path, fileMost)
	}
	if errors.Is(err, fs.ErrNotExist) || state.IsDamaged(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read saved limits: %w", err)
	}
	return string(text), nil
}

// put replaces a file's text, completely or not at all, even if the machine stops half way.
// systemd reads no file whose name does not end in .conf.
func (f journalFile) put(text string) error {
	dir := filepath.Dir(f.Path)
	if text == "" {
		if err := os.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("save limits: %w", err)
		}
		_ = os.Remove(dir) // if nothing else is in it
		return nil
	}
	if err := f.write(text); err != nil {
		return fmt.Errorf("save limits: %w", errors.Join(err, f.discard()))
	}
	return nil
}

func (f journalFile) write(text string) error {
	if f.Own {
		if err := f.folder().Make(); err != nil {
			return err
		}
		return f.folder().Write(filepath.Base(f.Path), filepath.Base(f.New), text)
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
		return err
	}
	return durable.Replace(f.Path, f.New, text, 0o644)
}

// discard removes an unfinished file.
func (f journalFile) discard() error {
	if err := os.Remove(f.New); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(f.Path)) // if nothing else is in it
	return nil
}

// apply writes the file, and makes systemd read it if it is a unit's drop-in.
func (f journalFile) apply(ctx context.Context, connect dialer) error {
	if err := f.put(f.After); err != nil {
		return err
	}
	return f.reload(ctx, connect)
}

// revert restores the file, unless somebody has changed it since.
func (f journalFile) revert(connect dialer) error {
	if err := f.discard(); err != nil {
		return fmt.Errorf("undo a half-done change: %w", err)
	}
	now, err := f.read()
	if err != nil {
		return fmt.Errorf("undo a half-done change: %w", err)
	}
	if now != f.After || now == f.Before {
		return nil
	}
	if err := f.put(f.Before); err != nil {
		return fmt.Errorf("undo a half-done change: %w", err)
	}
	// The file is restored. If systemd cannot be reached, it has not kept what it read, and
	// there is no need to wait for it.
	err = f.reload(context.Background(), connect)
	if errors.Is(err, state.ErrKeep) {
		return nil
	}
	return err
}

// RemoveFile removes a drop-in, and makes systemd read its units again.
func (h Holder) RemoveFile(ctx context.Context, path string) error {
	f := journalFile{Path: path}
	if err := f.put(""); err != nil {
		return err
	}
	return f.reload(ctx, h.dial)
}

// RemoveRecord removes a record of weir.
func (h Holder) RemoveRecord(path string) error { return (journalFile{Path: path, Own: true}).put("") }

// reload makes systemd read its units again, if the file is one of a unit.
func (f journalFile) reload(ctx context.Context, connect dialer) error {
	if f.Own {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, unitTimeout)
	defer cancel()
	conn, err := connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", state.ErrKeep, err)
	}
	defer conn.Close()
	return conn.Reload(ctx)
}
