package cache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// seenFile, beside an entry's folder, says in which state the entry's files were when their hash
// was right, so that images of gigabytes are not read at each run.
const seenFile = ".seen"

// settled is how long ago a file must have changed: within a clock's tick it could change again,
// and look the same.
const settled = 200 * time.Millisecond

// look says in which state an entry's files are, in this boot: a machine that lost its power may
// have lost what was in them. It is "" if one has just changed.
func look(dir string) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = h.Write(boot)
	recent, since := false, time.Now().Add(-settled)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%s\x00%v\x00", path, d.Type())
		if d.IsDir() {
			return nil
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(h, "%d %d %d %d %d\x00", st.Dev, st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
		recent = recent || time.Unix(st.Ctim.Unix()).After(since)
		return nil
	})
	if err != nil || recent {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
