package tree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/lab"
)

func TestFollows(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/a/b", 0o700), os.WriteFile(dir+"/a/io.max", nil, 0o600))
	f := follow(t, dir, Options{Files: []string{"io.max"}})
	for _, c := range []struct {
		do   func() error
		want []Event
	}{
		{func() error { return nil }, []Event{{Kind: Born, Path: "a"}, {Kind: Born, Path: "a/b"}}},
		{func() error { return os.Mkdir(dir+"/a/b/c", 0o700) }, []Event{{Kind: Born, Path: "a/b/c"}}},
		{func() error { return os.WriteFile(dir+"/a/io.max", []byte("x"), 0o600) }, []Event{{Kind: Written, Path: "a", File: "io.max"}}},
		{func() error {
			return errors.Join(os.WriteFile(dir+"/a/other", []byte("x"), 0o600), os.Mkdir(dir+"/d", 0o700))
		}, []Event{{Kind: Born, Path: "d"}}},
		{func() error { return os.Rename(dir+"/a", dir+"/e") }, []Event{{Kind: Ended, Path: "a/b/c"}, {Kind: Ended, Path: "a/b"}, {Kind: Ended, Path: "a"},
			{Kind: Born, Path: "e"}, {Kind: Born, Path: "e/b"}, {Kind: Born, Path: "e/b/c"}}},
		{func() error { return os.Remove(dir + "/e/b/c") }, []Event{{Kind: Ended, Path: "e/b/c"}}},
	} {
		must(t, c.do())
		var got []Event
		for len(got) < len(c.want) {
			events, err := f.Next(t.Context())
			must(t, err)
			got = append(got, events...)
		}
		if c.want[0].Kind == Written { // emptying and writing a file are two
			got = got[:1]
		}
		if !slices.Equal(got, c.want) {
			t.Fatalf("%v, want %v", got, c.want)
		}
		f.take(got)
	}
	f.agrees()
	if s := f.Stats(); s.Missed != 0 || s.Overflows != 0 || s.Left != 0 {
		t.Errorf("%+v", s)
	}
}

// script changes a tree at random: n times.
func script(r *rand.Rand, dir string, n int) {
	name := func() string {
		path := dir
		for range 1 + r.IntN(4) {
			path += "/" + string(rune('a'+r.IntN(4)))
		}
		return path
	}
	for range n { // many of these cannot be done, which is as well
		switch r.IntN(8) {
		case 0, 1, 2:
			_ = os.Mkdir(name(), 0o700)
		case 3:
			_ = os.MkdirAll(name(), 0o700)
		case 4, 5:
			_ = os.Remove(name())
		case 6:
			_ = os.RemoveAll(name())
		case 7:
			_ = os.Rename(name(), name())
		}
	}
}

// Whatever happens, in the end the tree agrees with what is there; also where the kernel drops
// events, and where a comparison runs in the middle.
func TestAgreesInTheEnd(t *testing.T) {
	lab.Unit(t)
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 26))
			f := follow(t, inMemory(t), Options{})
			done := make(chan bool)
			go func() {
				defer close(done)
				script(r, f.dir, 600)
			}()
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
				events, err := f.Next(ctx)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) && seed%2 == 1 {
					events, err = f.Resync()
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				f.take(events)
				if seed%4 == 2 { // as if the kernel had dropped what comes now
					_, _ = unix.Read(int(f.fd), make([]byte, 4096))
					f.lost = true
				}
			}
			f.agrees()
		})
	}
}

func FuzzAgrees(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint16(300))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		r := rand.New(rand.NewPCG(seed, 1))
		tree := follow(t, inMemory(t), Options{})
		for range 1 + n%5 {
			script(r, tree.dir, int(n%1000))
			if r.IntN(2) == 0 {
				tree.quiet()
			}
		}
		tree.agrees()
	})
}

// A group that is moved into a new one is found by the new one's list before the kernel's event for
// the old name is read. It is followed in its new place.
func TestMovedIntoANewGroup(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/a/below", 0o700))
	f := follow(t, dir, Options{})
	f.quiet()
	must(t, os.Mkdir(dir+"/b", 0o700), os.Rename(dir+"/a", dir+"/b/a"))
	f.agrees()
	must(t, os.Mkdir(dir+"/b/a/new", 0o700), os.Mkdir(dir+"/b/a/below/new", 0o700))
	f.agrees()
}

// A comparison finds nothing, and counts nothing as missed, while events tell of all.
func TestComparisonMissesNothingThatEventsTell(t *testing.T) {
	lab.Unit(t)
	f := follow(t, inMemory(t), Options{})
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range 300 {
			_ = os.MkdirAll(fmt.Sprintf("%s/%d/a/b", f.dir, i%50), 0o700)
			_ = os.RemoveAll(fmt.Sprintf("%s/%d", f.dir, (i+25)%50))
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		events, err := f.Resync()
		must(t, err)
		f.take(events)
	}
	f.agrees()
	if s := f.Stats(); s.Missed != 0 || s.Overflows != 0 {
		t.Errorf("%+v", s)
	}
}

// Groups that are made faster than watches are all found, in each depth.
func TestFasterThanWatches(t *testing.T) {
	lab.Unit(t)
	f := follow(t, inMemory(t), Options{})
	const all = 2000
	for i := range all {
		must(t, os.MkdirAll(fmt.Sprintf("%s/%d/x/y", f.dir, i), 0o700))
	}
	f.agrees()
	if s := f.Stats(); s.Groups != 3*all || s.Missed != 0 {
		t.Errorf("%+v", s)
	}
	must(t, os.RemoveAll(f.dir+"/1"))
	f.agrees()
}

func TestBounds(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	must(t, os.MkdirAll(dir+"/1/2/3/4", 0o700), os.Mkdir(dir+"/other", 0o700), os.Symlink("/", dir+"/link"))
	deep := follow(t, dir, Options{DepthMax: 2})
	deep.quiet()
	if got := deep.Groups(); !slices.Equal(got, []string{"1", "1/2", "other"}) || deep.Stats().Left != 1 {
		t.Errorf("%v %+v", got, deep.Stats())
	}
	few := follow(t, dir, Options{GroupsMax: 2})
	few.quiet()
	if s := few.Stats(); s.Groups != 2 || s.Left == 0 {
		t.Errorf("%+v", s)
	}
}

func TestTheRootIsGone(t *testing.T) {
	lab.Unit(t)
	dir := filepath.Join(t.TempDir(), "root")
	must(t, os.Mkdir(dir, 0o700))
	f := follow(t, dir, Options{})
	must(t, os.Remove(dir))
	if _, err := f.Resync(); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
	must(t, os.Mkdir(dir, 0o700))
	if _, err := f.Resync(); !errors.Is(err, ErrGone) {
		t.Errorf("another directory of that name: %v", err)
	}
	must(t, os.Remove(dir))
	if _, err := Open(dir, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestNextEndsWithItsContext(t *testing.T) {
	lab.Unit(t)
	f := follow(t, inMemory(t), Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if _, err := f.Next(ctx); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	must(t, os.Mkdir(f.dir+"/a", 0o700))
	if events, err := f.Next(t.Context()); err != nil || len(events) != 1 {
		t.Errorf("%v, %v", events, err)
	}
}

func TestLimitErrorSaysWhatToDo(t *testing.T) {
	lab.Unit(t)
	err := error(&LimitError{File: watchesFile, What: "watches"})
	if text := err.Error(); !strings.Contains(text, "fs.inotify.max_user_watches, which is ") || !strings.Contains(text, "sysctl -w fs.inotify.max_user_watches=N") || fault.ClassOf(err) != fault.NotPossible {
		t.Errorf("%v", err)
	}
}

// Nothing grows over births and ends: not the descriptors, not the watches.
func TestNothingGrows(t *testing.T) {
	lab.Unit(t)
	f := follow(t, inMemory(t), Options{})
	open := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(all)
	}
	watches := func() int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", f.fd))
		must(t, err)
		return strings.Count(string(text), "inotify wd:")
	}
	before := open()
	for range 20 {
		for i := range 50 {
			must(t, os.MkdirAll(fmt.Sprintf("%s/%d/a", f.dir, i), 0o700))
		}
		f.quiet()
		for i := range 50 {
			must(t, os.RemoveAll(fmt.Sprintf("%s/%d", f.dir, i)))
		}
		f.quiet()
	}
	if got := open(); got != before {
		t.Errorf("%d descriptors, before %d", got, before)
	}
	if got := watches(); got != 1 || len(f.watched) != 1 {
		t.Errorf("%d watches in the kernel, %d here", got, len(f.watched))
	}
}

func BenchmarkBirth(b *testing.B) {
	dir := b.TempDir()
	for i := range 2000 {
		if err := os.Mkdir(fmt.Sprintf("%s/g%d", dir, i), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	tree, err := Open(dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	if _, err := tree.Next(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		for _, do := range []func(string) error{func(p string) error { return os.Mkdir(p, 0o700) }, os.Remove} {
			if err := do(dir + "/x"); err != nil {
				b.Fatal(err)
			}
			if _, err := tree.Next(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Groups without a watch are counted, also when the kernel ends a watch.
func TestUnwatchedAreCounted(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(dir+"/a/b", 0o700); err != nil {
		t.Fatal(err)
	}
	tr, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	a := tr.top.below["a"]
	for want, do := range []func(){func() {}, func() { tr.unwatch(a) }, func() {
		if err := tr.event(a.below["b"].watch, unix.IN_IGNORED, ""); err != nil {
			t.Fatal(err)
		}
	}} {
		do()
		if s := tr.Stats(); s.Unwatched != want || s.Groups != 2 {
			t.Errorf("%+v, want %d", s, want)
		}
	}
	tr.drop(a)
	if s := tr.Stats(); s.Unwatched != 0 || s.Groups != 0 {
		t.Errorf("%+v: they have ended", s)
	}
}
