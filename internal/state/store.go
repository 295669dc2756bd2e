package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/base/rawtext"
)

// The endings of a record's files. A Store's user may have others, for records of things that are
// half made.
const (
	Ready  = ".json" // the record
	draft  = ".new"  // its text while it is written
	locked = ".lock" // see Hold
)

// A Store is the records of one kind that outlive boots: a folder with one file of JSON for each.
// Fields that this weir does not know are passed over, and missing ones are zero, so that records of
// older and newer weirs are understood.
type Store[T any] struct {
	Folder
	// Name is the name of a record's file, without its ending. A record in another's file is damaged.
	Name func(T) string
	// Check, if there is one, says what makes a record useless.
	Check func(T) error
	// ForBoot says that the records mean nothing after a boot. Save waits for no disk then, and what
	// a power cut may leave of a file is no record (durable.IsVoid).
	ForBoot bool
}

// Read reads the record of a name: its error is fs.ErrNotExist if there is none.
func (s Store[T]) Read(name string) (T, error) {
	v, err := s.read(name, Ready)
	if errors.Is(err, errVoid) {
		err = fs.ErrNotExist
	}
	return v, err
}

// List reads the records with an ending, in the order of their names. One that cannot be read is
// left out: it is in the error, which joins them all. A directory that is not there has none.
func (s Store[T]) List(ending string) ([]T, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var all []T
	var errs []error
	for _, e := range entries {
		name, is := strings.CutSuffix(e.Name(), ending)
		if !is {
			continue
		}
		v, err := s.read(name, ending)
		switch {
		case err == nil:
			all = append(all, v)
		case errors.Is(err, errVoid), errors.Is(err, fs.ErrNotExist): // it has just been removed, or renamed
		default:
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

var errVoid = errors.New("void")

func (s Store[T]) read(name, ending string) (T, error) {
	var v T
	data, err := s.Folder.Read(name + ending)
	if err != nil {
		return v, err
	}
	if s.ForBoot && durable.IsVoid(data) {
		return v, errVoid
	}
	err = rawtext.Unmarshal(data, &v)
	if err == nil && s.Name(v) != name {
		err = fmt.Errorf("it belongs to %q", s.Name(v))
	}
	if err == nil && s.Check != nil {
		err = s.Check(v)
	}
	if err != nil {
		var none T
		return none, &DamagedError{s.Path(name + ending), err}
	}
	return v, nil
}

// Save writes a record under its name: all of it or nothing, also if the machine stops half way.
func (s Store[T]) Save(v T, ending string) error {
	text, err := Text(v)
	if err != nil {
		return err
	}
	name := s.Name(v)
	if s.ForBoot {
		return durable.Swap(s.Path(name+ending), s.Path(name+draft), text, s.fileMode())
	}
	return s.Write(name+ending, name+draft, text)
}

// Text is what Save writes of a value.
func Text(v any) (string, error) {
	text, err := rawtext.Marshal(v)
	return string(text) + "\n", err
}

// Turn gives a record's file another ending.
func (s Store[T]) Turn(name, from, to string) error {
	return durable.Rename(s.Path(name+from), s.Path(name+to))
}

// Forget removes a record, and what else its name has there.
func (s Store[T]) Forget(name string) error {
	return s.Remove(name+Ready, name+draft, name+locked)
}

// holdTries and holdPause bound how long Hold tries: somebody may be looking whether the record is free.
const (
	holdTries = 20
	holdPause = time.Millisecond
)

// Hold takes one record for work that is longer than the folder stays locked: the lock is nil if
// another weir has it. Call it with the folder locked.
func (s Store[T]) Hold(name string) (*Lock, error) {
	for range holdTries {
		if lock, err := lockFile(s.Path(name+locked), makesLock); lock != nil || err != nil {
			return lock, err
		}
		time.Sleep(holdPause)
	}
	return nil, nil
}

// IsHeld reports whether a weir has a record.
func (s Store[T]) IsHeld(name string) bool { return isLocked(s.Path(name + locked)) }
