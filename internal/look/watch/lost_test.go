package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// unheard has the kernel tell nothing any more, as if what happens were told after the next reading.
func (w *tree) unheard() {
	for _, e := range w.entries {
		w.notices.end(e)
		e.watch = 1 << 30
	}
}

// away takes a group out of the tree. Its identity stays in use, so a new group has another.
func (w *tree) away(group string) {
	w.t.Helper()
	if err := os.Rename(w.dir(group), filepath.Join(w.t.TempDir(), "away")); err != nil {
		w.t.Fatal(err)
	}
	delete(w.bytes, group)
}

func (w *tree) dir(group string) string { return filepath.Join(w.h.Root, w.file(group, "")) }

// reopen has the next reading of a group look whether it is another one: the kernel says so with an
// error when a file of a group that is gone is read, which no copy does.
func (w *tree) reopen(group string) {
	e := w.entries["/"+group]
	e.whole, e.watch, e.followed, e.stirred = time.Time{}, noWatch, false, true
}

// A group that ends while the groups beside it are looked at takes none of them with it, whether it
// has done I/O lately or not, and whether there is a new one in its place or not.
func TestGroupsEndMeanwhile(t *testing.T) {
	for _, moving := range []bool{true, false} {
		for _, again := range []bool{true, false} {
			w := newTree(t, "s", "s/a", "s/b", "s/c")
			for range hotRounds + 2 {
				w.check("at rest")
			}
			if moving {
				w.put("s/a", 50)
				w.sums()
				w.check("one moves")
			}
			w.unheard()
			w.away("s/a")
			if again {
				w.put("s/a", w.bytes["s/b"])
			} else if err := os.Mkdir(w.dir("s/a"), 0o755); err != nil { // its files are not there
				t.Fatal(err)
			}
			w.reopen("s/a")
			w.check("one has ended")
		}
	}
}

// When events were lost, groups can have one another's names.
func TestLostRenames(t *testing.T) {
	w := newTree(t, "s", "s/a", "s/b", "s/b/x")
	w.put("s/a", 70)
	w.sums()
	for range 3 {
		w.check("before")
	}
	w.unheard()
	for _, names := range [][2]string{{"s/a", "s/tmp"}, {"s/b", "s/a"}, {"s/tmp", "s/b"}} {
		if err := os.Rename(w.dir(names[0]), w.dir(names[1])); err != nil {
			t.Fatal(err)
		}
	}
	w.bytes = map[string]int{"": 1, "s": 1, "s/a": 1, "s/a/x": 1, "s/b": 70}
	w.sums()
	w.event(-1, 0x4000, nil) // IN_Q_OVERFLOW
	w.check("after an overflow")
	w.put("s/a/new", 5)
	w.sums()
	w.check("a new one") // the kernel tells again
}

// A group with a watch below one without is looked at for another one in its place.
func TestRenamedBelowOneWithoutAWatch(t *testing.T) {
	w := newTree(t, "s", "s/a")
	w.check("first")
	w.check("second")
	w.notices.end(w.entries["/s"])
	w.away("s/a")
	w.put("s/a", 9)
	w.sums()
	w.now = w.now.Add(IdleEvery)
	w.check("another")
}

// A group that is made again, of which no file is open and whose watch the kernel has not ended, is a
// new one.
func TestMadeAgain(t *testing.T) {
	w := newTree(t, "s", "s/a")
	w.o.Keep = 1 // the root's
	w.start()
	w.check("first")
	w.check("second")
	held, err := os.Open(w.dir("s/a")) // so that its watch stays
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	w.remove("s/a")
	w.put("s/a", 3)
	w.put("s/a/x", 4)
	w.sums()
	w.check("again, with one below")
	w.put("s/a/y", 5)
	w.sums()
	w.check("one more below")
}
