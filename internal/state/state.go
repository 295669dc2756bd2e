package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/rawtext"
)

// A Dir is the directory of the records.
type Dir struct{ path string }

// A Record is a file that its owner holds locked.
type Record struct {
	f    *os.File
	path string
}

// ErrKeep is returned by a clean-up that is not possible yet: the record stays.
var ErrKeep = errors.New("not yet")

const (
	finished = ".json"
	begun    = ".new" // written, and perhaps not locked yet
)

// makeTries bounds how often weir tries to make something that another weir removes meanwhile.
const makeTries = 100

// New writes a record of a kind, which is a word without dots or slashes. The record is on disk
// and locked before New returns, so that everything done afterwards is cleaned up whenever the
// caller dies.
func (d Dir) New(kind string, v any) (*Record, error) { return d.newNamed(kind+".", v) }

// NewOf is New of a record about something, which AllOf finds among many.
func (d Dir) NewOf(kind, about string, v any) (*Record, error) {
	return d.newNamed(prefixOf(kind, about), v)
}

// prefixOf begins the names of a kind's records about something. The names that New gives have no "-".
func prefixOf(kind, about string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(about)) // never fails
	return fmt.Sprintf("%s.%016x-", kind, sum.Sum64())
}

func (d Dir) newNamed(prefix string, v any) (*Record, error) {
	for range makeTries {
		err := d.make()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f, err := d.draft(prefix)
		if errors.Is(err, fs.ErrNotExist) { // another weir has just tidied up
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("write a record: %w", err)
		}
		r, err := lockNew(f, v)
		if err == nil {
			return r, nil
		}
		_ = f.Close() // the record is none
		if !errors.Is(err, errSwept) {
			return nil, fmt.Errorf("write a record: %w", err)
		}
	}
	return nil, fmt.Errorf("write a record in %s: another weir keeps removing it", d.path)
}

// draft makes a file that no record has. (os.CreateTemp would ask epoll(7) to watch it, with five more system calls, and a
// container may wait for this record.)
func (d Dir) draft(prefix string) (*os.File, error) {
	for {
		path := filepath.Join(d.path, prefix+strconv.FormatUint(uint64(rand.Uint32()), 10)+begun)
		fd, err := again(func() (int, error) {
			return unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
		})
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EEXIST):
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// make makes the directory, and refuses one that another user could have put there.
// fs.ErrNotExist says that another weir has just removed it.
func (d Dir) make() error {
	if err := os.MkdirAll(d.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("write a record: %w", err)
	}
	switch there, mine, err := d.look(); {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("write a record in %s: %w", d.path, fs.ErrNotExist)
	case !mine:
		return fmt.Errorf("write a record: %s is not a directory that only you can write to; remove it", d.path)
	}
	return nil
}

var errSwept = errors.New("swept before it was locked")

// lockNew locks a new file, fills it and gives it its final name. Before it is locked, another
// weir may take it for a dead weir's and remove it.
func lockNew(f *os.File, v any) (*Record, error) {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	if st.Nlink == 0 {
		return nil, errSwept
	}
	r := &Record{f: f, path: strings.TrimSuffix(f.Name(), begun) + finished}
	text, err := rawtext.Marshal(v)
	if err != nil {
		return nil, err
	}
	if _, err := f.Write(text); err != nil {
		return nil, err
	}
	return r, os.Rename(f.Name(), r.path)
}

// Done removes the record: there is nothing left to clean up.
func (r *Record) Done() error {
	return errors.Join(os.Remove(r.path), r.f.Close())
}

// Replace replaces this record by another about the same thing. If weir is killed meanwhile, one of
// them remains, or both.
func (r *Record) Replace(v any) (*Record, error) {
	name := filepath.Base(r.path)
	prefix := name[:strings.Index(name, ".")+1]
	if i := strings.Index(name, "-"); i >= 0 { // NewOf has made it
		prefix = name[:i+1]
	}
	next, err := Dir{filepath.Dir(r.path)}.newNamed(prefix, v)
	if err != nil {
		return nil, err
	}
	return next, r.Done()
}

// Leave gives the record up without removing it: the next sweep takes it.
func (r *Record) Leave() error { return r.f.Close() }

// Path is the directory's.
func (d Dir) Path() string { return d.path }

// Own locks a file of the directory for whoever is the one program of its kind, until the lock is
// released; the lock is nil if somebody else has it.
func (d Dir) Own(name string) (*Lock, error) {
	if err := d.make(); err != nil {
		return nil, err
	}
	return lockFile(filepath.Join(d.path, name), makesLock)
}

// All reads every record of a kind, whoever owns it. One that cannot be read is in the error,
// beside the others. Of one that is cut short nothing was done yet: it is none.
func All[T any](d Dir, kind string) ([]T, error) {
	return allSuch[T](d, kind, func(string) bool { return true })
}

// AllOf is All of the records about something that NewOf has made, and of all that New has made. There
// may be some about other things among them.
func AllOf[T any](d Dir, kind, about string) ([]T, error) {
	prefix := prefixOf(kind, about)
	return allSuch[T](d, kind, func(name string) bool { return strings.HasPrefix(name, prefix) || !strings.Contains(name, "-") })
}

func allSuch[T any](d Dir, kind string, is func(name string) bool) ([]T, error) {
	paths, err := d.matching(func(name string) bool {
		return strings.HasPrefix(name, kind+".") && strings.HasSuffix(name, finished) && is(name) // else nothing was done yet
	})
	if err != nil {
		return nil, err
	}
	var all []T
	var errs []error
	for _, path := range paths {
		text, err := read(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !json.Valid(text) {
			continue
		}
		if err == nil {
			var v T
			if v, err = decode[T](path, text); err == nil {
				all = append(all, v)
			}
		}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func decode[T any](path string, text []byte) (v T, err error) {
	if err = rawtext.Unmarshal(text, &v); err != nil {
		err = &DamagedError{path, err}
	}
	return v, err
}

// records lists the records of a kind. A directory that is not there has none, and
// somebody else's say nothing.
func (d Dir) records(kind string) ([]string, error) { return d.withPrefix(kind + ".") }

// withPrefix lists the files whose names begin so.
func (d Dir) withPrefix(prefix string) ([]string, error) {
	return d.matching(func(name string) bool { return strings.HasPrefix(name, prefix) })
}

// matching lists the files whose names are such, sorted. It builds nothing for the others: there can be
// thousands.
func (d Dir) matching(is func(name string) bool) ([]string, error) {
	if mine, err := d.mine(); err != nil || !mine {
		return nil, err
	}
	names, err := namesIn(d.path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var paths []string
	for _, name := range names {
		if is(name) {
			paths = append(paths, filepath.Join(d.path, name))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// namesBytes is how much of a directory is read at once.
const namesBytes = 8 << 10

// namesIn lists a directory. Each verb does so several times, and os.ReadDir takes twice as many
// system calls.
func namesIn(dir string) (names []string, err error) {
	fd, err := again(func() (int, error) { return unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var buf [namesBytes]byte
	for {
		n, err := again(func() (int, error) { return unix.ReadDirent(fd, buf[:]) })
		if err != nil {
			return names, &fs.PathError{Op: "readdirent", Path: dir, Err: err}
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// Any reports whether there is a record of any kind.
func (d Dir) Any() (bool, error) {
	paths, err := d.withPrefix("")
	return slices.ContainsFunc(paths, func(path string) bool {
		return strings.HasSuffix(path, finished) || strings.HasSuffix(path, begun)
	}), err
}

// Sweep calls clean for every record of a kind whose owner is dead, and removes
// the record if clean returns nil. It goes on after errors and joins them; ErrKeep
// is no error. A directory that is not there has no records.
func Sweep[T any](d Dir, kind string, clean func(T) error) error {
	paths, err := d.records(kind)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, sweep(path, func(text []byte) error {
			v, err := decode[T](path, text)
			if err != nil {
				return err
			}
			return clean(v)
		}))
	}
	return errors.Join(errs...)
}

func sweep(path string, clean func([]byte) error) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if errors.Is(err, unix.ELOOP) {
		_, err := read(path) // which says what is wrong with a link
		return err
	}
	if err != nil {
		return fmt.Errorf("read record: %w", err)
	}
	defer f.Close()
	if free, err := flock(int(f.Fd()), unix.LOCK_EX); !free || err != nil {
		return nil // its owner lives
	}
	text, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its owner was done, or renamed it, meanwhile
	}
	if err != nil {
		return err
	}
	// A record that never got its final name, or whose text is cut short, was
	// written before anything was done.
	if strings.HasSuffix(path, finished) && json.Valid(text) {
		if err := clean(text); errors.Is(err, ErrKeep) {
			return nil
		} else if err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record: %w", err)
	}
	return nil
}
