package volume

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/state"
)

// A Volume is the record of a volume.
type Volume struct {
	Name  string      `json:"name"`
	Mount string      `json:"mount"`
	Image string      `json:"image,omitempty"` // the file; empty: the volume is adopted
	FS    string      `json:"fs"`
	Limit limit.Limit `json:"limit"`
	For   []string    `json:"for,omitempty"` // targets that have the limit too

	File      identity `json:"file"`                 // of the image
	Folder    uint64   `json:"folder,omitempty"`     // the inode of the image's directory: another one is there while its disk is not
	MadeMount bool     `json:"made_mount,omitempty"` // the mount point is weir's, and goes with the volume
	Loop      int      `json:"loop,omitempty"`       // the last loop device
	MountID   int      `json:"mount_id,omitempty"`   // of the last mount; another one has it after a boot

	Device blkdev.Number `json:"device"`           // adopted: that which is bound
	Before *bounds       `json:"before,omitempty"` // adopted: what its device had
}

// volumeFields are a Volume's, without its methods.
type volumeFields Volume

// volumeInJSON is a Volume in its record: where it is mounted, and its file, can be of any bytes.
type volumeInJSON struct {
	volumeFields
	Mount rawtext.Text `json:"mount"`
	Image rawtext.Text `json:"image,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (v Volume) MarshalJSON() ([]byte, error) {
	return json.Marshal(volumeInJSON{volumeFields(v), rawtext.Text(v.Mount), rawtext.Text(v.Image)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *Volume) UnmarshalJSON(data []byte) error {
	var j volumeInJSON
	err := json.Unmarshal(data, &j)
	*v = Volume(j.volumeFields)
	v.Mount, v.Image = string(j.Mount), string(j.Image)
	return err
}

// Adopted reports whether the volume was there before weir.
func (v Volume) Adopted() bool { return v.Image == "" }

// Dir is where volumes are, unless another place is named. Their records are below it.
const Dir = "/var/lib/weir/volumes"

func (s Store) records() string { return filepath.Join(s.Dir, ".records") }

// The names of a record in the states of a volume.
const (
	ready    = state.Ready
	making   = ".making"
	deleting = ".deleting"
	draft    = ".new"
)

func isReady(name string) bool { return strings.HasSuffix(name, ready) }

// A NameError means that there is no volume of that name, or that there is one already.
type NameError struct{ Name, Reason string }

func (e *NameError) Error() string { return fmt.Sprintf("volume %s: %s", e.Name, e.Reason) }

func (s Store) store() state.Store[Volume] {
	return state.Store[Volume]{Folder: state.Folder{Dir: s.records(), Mode: 0o700}, Name: func(v Volume) string { return v.Name }}
}

// List reads the volumes, in the order of their names. One whose record cannot be read is
// in the error, beside the others.
func (s Store) List() ([]Volume, error) { return s.list(ready) }

func (s Store) list(suffix string) ([]Volume, error) {
	all, err := s.store().List(suffix)
	if err != nil {
		return all, fmt.Errorf("volumes: %w", err)
	}
	return all, nil
}

// Find returns the volume of a name, or that is mounted at a directory.
func (s Store) Find(what string) (Volume, error) {
	all, unread := s.List()
	at, err := what, error(nil)
	if strings.Contains(what, "/") {
		if at, err = real(what); err != nil {
			return Volume{}, fmt.Errorf("volume %s: %w", what, err)
		}
	}
	i := slices.IndexFunc(all, func(v Volume) bool { return v.Name == what || v.Mount == at })
	if i < 0 && unread != nil {
		return Volume{}, unread // it may be that one
	}
	if i < 0 {
		var names []string
		for _, v := range all {
			names = append(names, v.Name)
		}
		reason := "there is no volume yet"
		if len(names) > 0 {
			reason = "there is no such volume; the volumes are " + strings.Join(names, ", ")
		}
		return Volume{}, &NameError{what, reason}
	}
	return all[i], nil
}

func (s Store) path(name, suffix string) string { return filepath.Join(s.records(), name+suffix) }

// save puts a volume on record.
func (s Store) save(v Volume, suffix string) error {
	if err := s.store().Save(v, suffix); err != nil {
		return fmt.Errorf("record volume %s: %w", v.Name, err)
	}
	return nil
}

// turn gives a record another name.
func (s Store) turn(v Volume, from, to string) error {
	if err := s.store().Turn(v.Name, from, to); err != nil {
		return fmt.Errorf("record volume %s: %w", v.Name, err)
	}
	return nil
}

func (s Store) forget(v Volume, suffix string) error {
	if err := s.store().Remove(v.Name + suffix); err != nil {
		return fmt.Errorf("remove the record of volume %s: %w", v.Name, err)
	}
	return nil
}

// recover takes makings of dead weirs back, and deletions to their end.
func (s Store) recover() error {
	errs := []error{s.sweepLoops()}
	unmade, err := s.list(making)
	errs = append(errs, err)
	for _, v := range unmade {
		errs = append(errs, s.unmake(v))
	}
	doomed, err := s.list(deleting)
	errs = append(errs, err)
	for _, v := range doomed {
		errs = append(errs, s.finishDelete(v))
	}
	drafts, err := filepath.Glob(s.path("*", draft))
	errs = append(errs, err)
	for _, name := range drafts {
		errs = append(errs, os.Remove(name))
	}
	return errors.Join(errs...)
}
