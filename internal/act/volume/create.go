package volume

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// A Spec describes a volume to create.
type Spec struct {
	What  string // a name, or with a slash in it the directory where it is mounted
	Size  uint64 // bytes
	FS    string
	Limit limit.Limit
	For   []string
	On    string // the directory that its file is made in; empty: where volumes are on record
}

// A SpecError means that a volume cannot be what was asked for.
type SpecError struct{ Name, Reason string }

func (e *SpecError) Error() string { return fmt.Sprintf("volume %s: %s", e.Name, e.Reason) }

// Class makes it fault.WrongUse.
func (e *SpecError) Class() fault.Class { return fault.WrongUse }

// nameMost bounds a volume's name, in bytes: it becomes a part of paths.
const nameMost = 64

// isName reports whether a volume can be called so. (A regexp would have to be compiled at
// every start of weir.)
func isName(name string) bool {
	for i, c := range []byte(name) {
		plain := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return name != "" && len(name) <= nameMost
}

// named makes a volume of what a user calls it.
func (s Store) named(what string) (Volume, error) {
	if !strings.Contains(what, "/") {
		if !isName(what) {
			return Volume{}, &SpecError{what, "a name is at most 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit; a directory has a slash (./data)"}
		}
		dir, err := real(s.Dir)
		return Volume{Name: what, Mount: filepath.Join(dir, what)}, err
	}
	dir, err := real(what)
	if err != nil {
		return Volume{}, fmt.Errorf("volume %s: %w", what, err)
	}
	name := strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-")
	if dir == "/" {
		return Volume{}, &SpecError{"/", "a limit on the host's own disk would apply to everything; name another mount"}
	}
	if !isName(name) {
		return Volume{}, &SpecError{what, "its path gives no name (" + name + "); create it by a NAME, and make the directory a link to it"}
	}
	return Volume{Name: name, Mount: dir}, nil
}

// PlaceOf is where the volume of a name or a directory is mounted.
func (s Store) PlaceOf(what string) (string, error) {
	v, err := s.named(what)
	return v.Mount, err
}

// real resolves links in a path whose end need not be there.
func real(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	got, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != "/" {
		above, err := real(filepath.Dir(dir))
		return filepath.Join(above, filepath.Base(dir)), err
	}
	return got, err
}

// Create creates a volume and mounts it. If it fails, or is interrupted, it leaves nothing
// behind. strict is false if the kernel cannot hold back the writers to it.
func (s Store) Create(ctx context.Context, spec Spec) (v Volume, strict bool, err error) {
	v, f, err := s.asked(spec)
	if err != nil {
		return v, false, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return v, false, err
	}
	defer unlock()
	if err := s.free(v); err != nil {
		return v, false, err
	}
	image, err := newImage(ctx, filepath.Dir(v.Image), spec.Size, f)
	if err != nil {
		return v, false, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	defer image.Close()
	strict, err = s.make(ctx, &v, image)
	if err != nil {
		return v, false, errors.Join(fmt.Errorf("volume %s: %w", v.Name, err), s.unmake(v))
	}
	return v, strict, s.turn(v, making, ready)
}

// asked is the volume that a spec describes. What can be no volume is refused.
func (s Store) asked(spec Spec) (v Volume, f format, err error) {
	f, known := formatOf(spec.FS)
	if !known {
		return v, f, &SpecError{spec.What, fmt.Sprintf("weir cannot make %s; write %s", spec.FS, strings.Join(Formats(), " or "))}
	}
	if spec.Size < f.least {
		return v, f, &SpecError{spec.What, fmt.Sprintf("the size is too small: %s needs at least %d MiB", f.name, f.least>>20)}
	}
	if v, err = s.named(spec.What); err != nil {
		return v, f, err
	}
	if err := s.mayLimit(spec.Limit); err != nil {
		return v, f, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	v.FS, v.Limit, v.For = f.name, spec.Limit.Bound(), spec.For
	on, err := real(cmp.Or(spec.On, s.Dir))
	if err != nil {
		return v, f, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	v.Image = filepath.Join(on, v.Name+".img")
	return v, f, nil
}

// free refuses names and places that are taken, and a directory for the file that is not safe.
func (s Store) free(v Volume) error {
	if err := s.fresh(v); err != nil {
		return err
	}
	if err := rootsAlone(filepath.Dir(v.Image)); err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	if _, err := os.Lstat(v.Image); err == nil {
		return fault.With(fmt.Errorf("volume %s: the file %s exists already; move it away", v.Name, v.Image), fault.Remedy{Do: fault.NameOtherPlace})
	}
	return nil
}

// fresh refuses names and mount points that are taken.
func (s Store) fresh(v Volume) error {
	if err := s.unused(v); err != nil {
		return err
	}
	if _, mounted, err := s.Devices.MountedOn(v.Mount); err != nil {
		return err
	} else if mounted {
		return fault.With(fmt.Errorf("volume %s: something is mounted at %s already", v.Name, v.Mount), fault.Remedy{Do: fault.VolumeAdopt, Target: v.Mount})
	}
	entries, err := os.ReadDir(v.Mount)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s has files in it, which the volume would hide; name an empty directory, or one that does not exist", v.Mount)
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return nil
}

// unused refuses names and places that other volumes have.
func (s Store) unused(v Volume) error {
	all, unread := s.List()
	if _, err := os.Lstat(s.path(v.Name, ready)); err == nil && unread != nil && !slices.ContainsFunc(all, func(o Volume) bool { return o.Name == v.Name }) {
		return unread // it is that one
	}
	for _, other := range all {
		if other.Name == v.Name {
			return &NameError{v.Name, "it exists already, at " + other.Mount}
		}
		if other.Mount == v.Mount {
			return fmt.Errorf("volume %s: %s is the place of volume %s; name another directory", v.Name, v.Mount, other.Name)
		}
	}
	for _, suffix := range []string{making, deleting} {
		if _, err := os.Lstat(s.path(v.Name, suffix)); err == nil {
			return &NameError{v.Name, "a killed weir left a part of it, which is still in use; stop what uses it"}
		}
	}
	return nil
}

// make names the image and mounts it, on record before each step.
func (s Store) make(ctx context.Context, v *Volume, image *os.File) (strict bool, err error) {
	if v.File, err = identify(int(image.Fd())); err == nil {
		v.Folder, err = folderOf(v.Image)
	}
	if err != nil {
		return false, err
	}
	_, err = os.Lstat(v.Mount)
	v.MadeMount = errors.Is(err, fs.ErrNotExist)
	if err := s.save(*v, making); err != nil {
		return false, err
	}
	if err := link(image, v.Image); err != nil {
		return false, err
	}
	if v.MadeMount {
		if err := makeDir(v.Mount); err != nil {
			return false, err
		}
	}
	named, err := openImage(*v) // sysfs has the name that it was opened by
	if err != nil {
		return false, err
	}
	defer named.Close()
	return s.attach(ctx, v, named, making)
}

// unmake takes back what make has done so far. What is still in use stays, with its record.
func (s Store) unmake(v Volume) error {
	var err error
	if v.Adopted() {
		err = s.release(context.Background(), v)
	} else {
		err = s.remove(v)
	}
	if err != nil {
		return fmt.Errorf("undo volume %s: %w", v.Name, err)
	}
	return s.forget(v, making)
}

// remove removes all of a volume but its record.
func (s Store) remove(v Volume) error {
	if err := s.down(v); err != nil {
		return err
	}
	if err := removeImage(v); err != nil {
		return err
	}
	return removeDir(v)
}
