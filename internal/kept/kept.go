// Package kept stores the limits that weir itself must set again after a restart, for targets
// whose owner cannot: containers whose limit neither Docker nor a scope keeps.
//
// The limits are in /var/lib/weir/limits, in one file for each container, under its permanent name
// (the whole id). The file has the places as the user spelled them, so that weir resolves them
// anew.
//
// weir restore asks the daemon where the limit was set (DOCKER_HOST and similar variables are saved
// too). It sets the saved limits of running containers, and removes nothing: an owner may know a
// container again once its disk is mounted. weir clear removes saved limits, by the saved name if
// the owner does not know the container.
package kept

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/state"
)

// Dir is where the records are, below the host's root.
const Dir = "/var/lib/weir/limits"

// A Record is the saved limits of one target.
type Record struct {
	Target  string        `json:"target"`         // by the name that its owner has for good: docker:WHOLE-ID
	Name    string        `json:"name"`           // as the user spelled it
	Host    string        `json:"host,omitempty"` // the owner's socket, if it is not the usual one (DOCKER_HOST and its like)
	Entries []limit.Asked `json:"limits"`
}

// Path is where a target's record is, below the host's root.
func Path(target string) string { return filepath.Join(Dir, url.QueryEscape(target)+state.Ready) }

// Text is a record's file; empty for a record without limits, which will be removed.
func (r Record) Text() (string, error) {
	if len(r.Entries) == 0 {
		return "", nil
	}
	return state.Text(r)
}

func store(root string) state.Store[Record] {
	return state.Store[Record]{
		Folder: state.Folder{Dir: filepath.Join(root, Dir), Mode: 0o755},
		Name:   func(r Record) string { return url.QueryEscape(r.Target) },
	}
}

// Make makes the directory of the records.
func Make(root string) error { return store(root).Make() }

// Read reads a target's record; without one it has no limits.
func Read(root, target string) (Record, error) {
	r, err := store(root).Read(url.QueryEscape(target))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{Target: target}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("saved limits: %w", err)
	}
	return r, nil
}

// List reads all records, in the order of their files. A record that cannot be read is an error
// beside the others.
func List(root string) ([]Record, error) {
	all, err := store(root).List(state.Ready)
	if err != nil {
		return all, fmt.Errorf("saved limits: %w", err)
	}
	return all, nil
}
