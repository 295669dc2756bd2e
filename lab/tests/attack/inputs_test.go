package attack_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

func init() {
	attacks["inputs"] = func(args []string) error {
		at := func(name string) string { return filepath.Join(args[0], name) }
		deep := strings.Repeat("[", 100_000)
		bomb := "plans: {a: &a [x,x,x,x,x,x,x,x], b: &b [*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b], d: [*c,*c,*c,*c,*c,*c,*c,*c]}\n"
		odd := "plans: {\"\\e[2J\\n\\u202e\": {write: 1}}\ngroup \x1b[2J { blkio { } }\n"
		err := errors.Join(unix.Mkfifo(at("fifo"), 0o644), os.Symlink("/dev/zero", at("zero")), os.Symlink("/proc/kmsg", at("kmsg")), os.Symlink("circle", at("circle")), os.Symlink("/dev/watchdog", at("device")),
			os.WriteFile(at("long"), bytes.Repeat([]byte("plans: {}\n"), 1<<20), 0o644), os.WriteFile(at("holes"), nil, 0o644), os.Truncate(at("holes"), 1<<40),
			os.WriteFile(at("deep"), []byte(deep), 0o644), os.WriteFile(at("bomb"), []byte(bomb), 0o644), os.WriteFile(at("odd"), []byte(odd), 0o644), os.WriteFile(at("leased"), nil, 0o644))
		if err != nil {
			return err
		}
		f, err := os.OpenFile(at("leased"), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		held = append(held, f)
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
		return err
	}
	attacks["a picture's place"] = func(args []string) error {
		return errors.Join(os.Symlink(args[1], filepath.Join(args[0], "picture.svg")), unix.Mkfifo(filepath.Join(args[0], "picture.fifo"), 0o644))
	}
}

// Files that root has weir read or write in a user's directory are what they seem, or nothing is
// read or written.
func TestInputsOfAUser(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.OnceV2, lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	dir := home(t, disk)
	t.Run("plans and configurations", func(t *testing.T) {
		start(t, nil, "inputs", dir).begin(t)
		for _, name := range []string{"fifo", "zero", "kmsg", "circle", "device", "long", "holes", "deep", "bomb", "odd", "leased"} {
			at := filepath.Join(dir, name)
			for _, args := range [][]string{{"plan", "check", "--plans", at}, {"plan", "apply", "--plans", at}, {"run", "--plan", "a", "--plans", at, "--", "echo", "ran"}, {"import", at}, {"import", at, "--apply"}} {
				said, status := weir(t, args...)
				if status < 1 || status > 3 || strings.Contains(said, "ran\n") || strings.Count(said, "\n") > 25 || len(said) > 20_000 {
					t.Errorf("weir %q: status %d, %d lines\n%.1000s", args, status, strings.Count(said, "\n"), said)
				}
			}
		}
	})
	t.Run("a picture", func(t *testing.T) {
		precious := filepath.Join(disk.Dir, "precious")
		if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		start(t, nil, "a picture's place", dir, precious).begin(t)
		refuses(t, "prove", "--write", "9MB/s", "--on", disk.Dir, "--paths", "direct", "--for", "1s", "--svg", filepath.Join(dir, "picture.svg"))
		answers(t, "prove", "--write", "20MB/s", "--on", disk.Dir, "--paths", "direct", "--for", "1s", "--svg", filepath.Join(dir, "picture.fifo"))
		if text, err := os.ReadFile(precious); err != nil || string(text) != "kept" {
			t.Errorf("root's file: %q, %v", text, err)
		}
	})
	t.Run("a place for proofs", func(t *testing.T) {
		theirs := filepath.Join(dir, "proofs")
		if err := errors.Join(os.Mkdir(theirs, 0o755), os.Chown(theirs, user, user)); err != nil {
			t.Fatal(err)
		}
		start(t, nil, "exchange", filepath.Join(theirs, "moving")).begin(t)
		answers(t, "prove", "--write", "20MB/s", "--on", theirs, "--paths", "direct,buffered", "--for", "1s")
		entries, err := os.ReadDir(theirs)
		if err != nil || len(entries) != 4 { // what the attack exchanges
			t.Errorf("in the user's directory: %v, %v", entries, err)
		}
	})
}
