package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// At returns the directory of the host below root, for the caller: /run/weir for root. For
// others it is $XDG_RUNTIME_DIR/weir or a directory in /tmp named after the user. Anybody can
// make that one before the user does; the records are in the user's home then.
func At(root string) Dir {
	uid := os.Getuid()
	if uid == 0 {
		return Dir{filepath.Join(root, "run/weir")}
	}
	if run, is := runtimeDir(root); is {
		return Dir{filepath.Join(run, "weir")}
	}
	return inTmp(root, uid, os.Getenv("HOME"))
}

// Hides reports whether weir's records for root are on the host below root, and d is another user's
// directory: what they say is not known then.
func (d Dir) Hides(root string) bool {
	roots := filepath.Join(root, "run/weir")
	if d.path == roots {
		return false
	}
	_, err := os.Lstat(roots)
	return err == nil
}

// inTmp is a user's directory in /tmp, or in the home where somebody else has that one.
func inTmp(root string, uid int, home string) Dir {
	d := Dir{filepath.Join(root, "tmp", fmt.Sprintf("weir-%d", uid))}
	if there, own, err := d.lookAs(uid); err != nil || !there || own || !filepath.IsAbs(home) {
		return d
	}
	if _, own, err := (Dir{filepath.Join(root, home)}).lookAs(uid); err != nil || !own {
		return d
	}
	return Dir{filepath.Join(root, home, ".local/state/weir")}
}

// mine reports whether the directory is there and only its user can write to it.
func (d Dir) mine() (bool, error) {
	_, mine, err := d.look()
	return mine, err
}

func (d Dir) look() (there, mine bool, err error) { return d.lookAs(os.Getuid()) }

// lookAs reports whether the directory is there, and a user's that only the user can write to.
func (d Dir) lookAs(uid int) (there, own bool, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(d.path, &st); errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	} else if err != nil {
		return false, false, fmt.Errorf("stat %s: %w", d.path, err)
	}
	return true, st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == uid && st.Mode&0o022 == 0, nil
}
