package keep

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/state"
)

// SavedDir is where weir's own records of limits are, below the host's root.
const SavedDir = "/var/lib/weir/limits"

// A Saved is the limits of one target that weir itself must set again after a restart, because its
// owner cannot: a container whose limit neither its engine nor a scope keeps. The places are as the user
// spelled them, so that weir resolves them anew.
type Saved struct {
	Target  string        `json:"target"`         // by the name that its owner has for good: docker:WHOLE-ID
	Name    string        `json:"name"`           // as the user spelled it
	Host    string        `json:"host,omitempty"` // the owner's socket, if it is not the usual one (DOCKER_HOST and its like)
	Entries []limit.Asked `json:"limits"`
}

// SavedPath is where a target's record is, below the host's root.
func SavedPath(target string) string {
	return filepath.Join(SavedDir, state.FileName(target)+state.Ready)
}

// Text is a record's file; empty for a record without limits, which will be removed.
func (r Saved) Text() (string, error) {
	if len(r.Entries) == 0 {
		return "", nil
	}
	return state.Text(r)
}

func savedIn(root string) state.Store[Saved] {
	return state.Store[Saved]{
		Folder: state.Folder{Dir: filepath.Join(root, SavedDir), Mode: 0o755},
		Name:   func(r Saved) string { return state.FileName(r.Target) },
	}
}

// ReadSaved reads a target's record; without one it has no limits.
func ReadSaved(root, target string) (Saved, error) {
	r, err := savedIn(root).Read(state.FileName(target))
	if errors.Is(err, fs.ErrNotExist) {
		return Saved{Target: target}, nil
	}
	if err != nil {
		return Saved{}, fmt.Errorf("saved limits: %w", err)
	}
	return r, nil
}

// ListSaved reads all records, in the order of their files. A record that cannot be read is an error
// beside the others.
func ListSaved(root string) ([]Saved, error) {
	all, err := savedIn(root).List(state.Ready)
	if err != nil {
		return all, fmt.Errorf("saved limits: %w", err)
	}
	return all, nil
}
