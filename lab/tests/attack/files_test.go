package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// oddNames are names of files and groups that a terminal, a record or a unit's file could
// take for something else.
var oddNames = []string{
	"\x1b[2J\x1b]0;pwned\a", "a\nExecStart=evil\n", "unit\x1fseparator\x1e", "a b", `a\x2d`, "50%$HOME`id`", "-rf", "\xff\xfe", "\u202eexe", "'\"", "x (deleted)",
	"docker-" + strings.Repeat("0a", 32) + ".scope", strings.Repeat("n", 250),
}

func init() {
	attacks["fifo"] = func(args []string) error { return unix.Mkfifo(args[0], 0o644) }
	attacks["lease"] = func(args []string) error {
		f, err := os.OpenFile(args[0], os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return err
		}
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		held = append(held, f) // and never answers the kernel's question for it
		return err
	}
	attacks["huge"] = func(args []string) error {
		f, err := os.Create(args[0])
		if err != nil {
			return err
		}
		defer f.Close()
		for size := int64(1) << 62; size > 1<<40; size /= 2 { // as large as the file system takes
			if f.Truncate(size) == nil {
				return nil
			}
		}
		return f.Truncate(1 << 40)
	}
	attacks["exchange"] = exchange
	attacks["names"] = func(args []string) error {
		for _, name := range oddNames {
			if err := os.WriteFile(filepath.Join(args[0], name), []byte("x"), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	attacks["long"] = func(args []string) error {
		if err := os.Chdir(args[0]); err != nil {
			return err
		}
		for range 60 {
			name := strings.Repeat("d", 250)
			if err := os.Mkdir(name, 0o755); err != nil {
				return err
			}
			if err := os.Chdir(name); err != nil {
				return err
			}
		}
		return nil
	}
	attacks["links"] = func(args []string) error {
		for name, to := range map[string]string{"loop": "loop", "ab": "ba", "ba": "ab", "mem": "/dev/mem", "proc": "/proc/self/fd", "zero": "/dev/zero", "tty": "/dev/tty"} {
			if err := os.Symlink(to, filepath.Join(args[0], name)); err != nil {
				return err
			}
		}
		return nil
	}
}

// held keeps files open until the attack ends.
var held []*os.File

// exchange puts a FIFO, a link to a device and a link to one of root's files in a file's place,
// by turns, as fast as it can.
func exchange(args []string) error {
	file := args[0]
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		return err
	}
	if err := unix.Mkfifo(file+".fifo", 0o644); err != nil {
		return err
	}
	if err := os.Symlink("/dev/zero", file+".zero"); err != nil {
		return err
	}
	if err := os.Symlink("/etc/shadow", file+".shadow"); err != nil {
		return err
	}
	go func() {
		for {
			for _, with := range []string{".fifo", ".zero", ".shadow"} {
				_ = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, file+with, unix.RENAME_EXCHANGE)
				_ = unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, file+with, unix.RENAME_EXCHANGE)
			}
		}
	}()
	return nil
}

// A user's files never make weir wait, and never make it open something that it must not
// open.
func TestFilesOfAUser(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.OnceV1, lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	dir := home(t, disk)
	at := func(name string) string { return filepath.Join(dir, name) }
	limit := []string{"--write", "9MB/s"}
	t.Run("a FIFO", func(t *testing.T) {
		start(t, nil, "fifo", at("fifo")).begin(t)
		answers(t, append([]string{"why", at("fifo")}, limit...)...)
		works(t, "run", "--write", "9MB/s", "--on", at("fifo"), "--", "true")
	})
	t.Run("a lease", func(t *testing.T) {
		start(t, nil, "lease", at("leased")).begin(t)
		answers(t, append([]string{"why", at("leased")}, limit...)...)
	})
	t.Run("a huge file", func(t *testing.T) {
		start(t, nil, "huge", at("huge")).begin(t)
		answers(t, append([]string{"why", at("huge")}, limit...)...)
	})
	t.Run("a file exchanged", func(t *testing.T) {
		start(t, nil, "exchange", at("moving")).begin(t)
		for range 20 {
			if said, status := weir(t, append([]string{"why", at("moving")}, limit...)...); status > 3 {
				t.Errorf("status %d: %s", status, said)
			}
		}
	})
	t.Run("names", func(t *testing.T) {
		start(t, nil, "names", dir).begin(t)
		for _, name := range oddNames {
			answers(t, append([]string{"why", at(name)}, limit...)...)
			works(t, "run", "--write", "9MB/s", "--on", at(name), "--dry-run", "--", "true")
			works(t, "run", "--write", "9MB/s", "--on", dir, "--", "true", name)
			if said := answers(t, "why", "--json", at(name), "--write", "9MB/s"); !strings.Contains(said, disk.Number.String()) {
				t.Errorf("%q: %s", name, said)
			}
		}
	})
	t.Run("long paths", func(t *testing.T) {
		start(t, nil, "long", dir).begin(t)
		deep := dir
		for len(deep) < 4000-251 {
			deep += "/" + strings.Repeat("d", 250)
		}
		if said := answers(t, append([]string{"why", deep}, limit...)...); len(said) > 40_000 {
			t.Errorf("%d bytes", len(said))
		}
		refuses(t, append([]string{"why", deep + strings.Repeat("/"+strings.Repeat("d", 250), 10)}, limit...)...)
	})
	t.Run("links", func(t *testing.T) {
		start(t, nil, "links", dir).begin(t)
		for _, name := range []string{"loop", "ab", "mem", "proc", "zero", "tty"} {
			said := refuses(t, "run", "--write", "9MB/s", "--on", at(name), "--", "sh", "-c", "echo ran")
			if strings.Contains(said, "ran\n") {
				t.Errorf("%s: the command ran: %s", name, said)
			}
		}
	})
	t.Run("a place for volumes", func(t *testing.T) {
		said := refuses(t, "volume", "create", "theirs", "--on", dir, "--size", "16MiB")
		if entries, err := os.ReadDir(dir); err != nil || strings.Contains(fmt.Sprint(entries), "theirs") {
			t.Errorf("%v, %v: %s", entries, err, said)
		}
	})
}
