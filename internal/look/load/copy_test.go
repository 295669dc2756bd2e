package load

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCopyIsTimedWriteByWrite(t *testing.T) {
	dir := t.TempDir()
	c := Copy{Dir: dir, Block: 4096, Size: 10*4096 + 100}
	parsed, err := ParseCopy(c.Args())
	if err != nil || parsed != c {
		t.Fatalf("%+v, %v", parsed, err)
	}
	ours, err := NewLog(c.Writes())
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(ours.File().Fd()))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := OpenLog(os.NewFile(uintptr(fd), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := RunCopy(c, theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Add(Timing{}) // one too many
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	all := ours.Timings()
	if len(all) != 10 || ours.Len() != 10 {
		t.Fatalf("%d writes, want 10", len(all))
	}
	for i, w := range all {
		if w.Took <= 0 || i > 0 && w.At < all[i-1].At+int64(all[i-1].Took) {
			t.Errorf("write %d: %+v after %+v", i, w, all[max(i-1, 0)])
		}
	}
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

func TestCopyRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"dir=x", "block=0", "size=1"}, {"dir=x", "block=10", "size=9"}, {"dir=x", "block=1", "size=1", "what=1"}, {"block=1", "size=1"}} {
		if c, err := ParseCopy(args); err == nil {
			t.Errorf("%q is %+v", args, c)
		}
	}
	if _, err := OpenLog(empty(t)); err == nil {
		t.Error("an empty file is a log")
	}
}

func empty(t *testing.T) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	return f
}
