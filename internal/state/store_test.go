package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A thing is what the stores of these tests have on record.
type thing struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

func things(t *testing.T) Store[thing] {
	t.Helper()
	s := Store[thing]{Folder: Folder{filepath.Join(t.TempDir(), "weir/things"), 0o700}, Name: func(v thing) string { return v.Name }}
	if err := s.Make(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A record of a name that is not UTF-8 is read as what it was.
func TestAStoreKeepsNamesThatAreNotUTF8(t *testing.T) {
	s := things(t)
	s.Name = func(v thing) string { return strings.ToValidUTF8(v.Name, "x") }
	if err := s.Save(thing{"\xff", 3}, Ready); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(Ready); err != nil || len(all) != 1 || all[0] != (thing{"\xff", 3}) {
		t.Errorf("%+v, %v", all, err)
	}
}

// Whatever is in the place of a record, the others are read, its own error names it, and the reader
// neither hangs nor fills memory.
func TestAStoreLeavesOutWhatIsNoRecord(t *testing.T) {
	s := things(t)
	s.Check = func(v thing) error {
		if v.Size == 0 {
			return errors.New("it has no size")
		}
		return nil
	}
	in := func(name string) string { return s.Path(name + Ready) }
	write := func(name, text string) error { return os.WriteFile(in(name), []byte(text), 0o600) }
	first, last := thing{"a", 1}, thing{"z", 2}
	bad := map[string]string{"b": "unexpected end of JSON input", "c": "it is no regular file, and no record", "d": "it is a link, and no record",
		"e": "it is no regular file, and no record", "f": "it is longer than 1048576 bytes, and no record", "g": `it belongs to "a"`,
		"h": "it has no size", "i": "others can write to it (mode 0620), so it is no record of weir", "j": "cannot unmarshal", "k": "unexpected end of JSON input"}
	if err := errors.Join(s.Save(first, Ready), s.Save(last, Ready), write("b", "{"), unix.Mkfifo(in("c"), 0o600), os.Symlink("/dev/zero", in("d")),
		os.Mkdir(in("e"), 0o700), write("f", strings.Repeat(" ", recordMost+1)), write("g", `{"name":"a","size":1}`), write("h", `{"name":"h"}`),
		write("i", `{"name":"i","size":1}`), os.Chmod(in("i"), 0o620), write("j", `{"name":"j","size":"much"}`), write("k", "")); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		bad["l"] = "it belongs to user 65534, so it is no record of weir"
		if err := errors.Join(write("l", `{"name":"l","size":1}`), os.Chown(in("l"), 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	}
	type result struct {
		all []thing
		err error
	}
	read := make(chan result, 1)
	go func() { all, err := s.List(Ready); read <- result{all, err} }()
	var got result
	select {
	case got = <-read:
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs")
	}
	if !reflect.DeepEqual(got.all, []thing{first, last}) {
		t.Errorf("read %+v", got.all)
	}
	for name, why := range bad {
		_, err := s.Read(name)
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.Path != in(name) || !strings.Contains(err.Error(), why) || !strings.HasSuffix(err.Error(), "; move it away") {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
		if err == nil || got.err == nil || !strings.Contains(got.err.Error(), err.Error()) {
			t.Errorf("%s is not named in %v", name, got.err)
		}
	}
	if n := strings.Count(got.err.Error(), "\n") + 1; n != len(bad) {
		t.Errorf("%d errors of %d records:\n%v", n, len(bad), got.err)
	}
}

// Saving over a damaged record makes it whole, whatever was in its place.
func TestAStoreReplacesWhatIsNoRecord(t *testing.T) {
	s := things(t)
	in := func(name string) string { return s.Path(name + Ready) }
	outside := filepath.Join(t.TempDir(), "outside")
	if err := errors.Join(os.WriteFile(outside, []byte("x"), 0o600), os.WriteFile(in("a"), []byte("{"), 0o666), unix.Mkfifo(in("b"), 0o600), os.Symlink(outside, in("c"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if err := s.Save(thing{name, 1}, Ready); err != nil {
			t.Error(err)
		}
		if v, err := s.Read(name); err != nil || v.Size != 1 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if st, err := os.Lstat(in(name)); err != nil || st.Mode() != 0o600 {
			t.Errorf("%s is %v, %v", name, st.Mode(), err)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "x" {
		t.Errorf("what a link led to is %q, %v", text, err)
	}
}

// What a power cut leaves of a record that was not to outlive it is no record, and what nobody could
// have left is damaged.
func TestAStoreForBoot(t *testing.T) {
	s := things(t)
	s.ForBoot = true
	if err := s.Save(thing{"a", 1}, Ready); err != nil {
		t.Fatal(err)
	}
	if v, err := s.Read("a"); err != nil || v.Size != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	for text, void := range map[string]bool{"": true, "\x00\x00": true, "{": false, "\x00{": false} {
		if err := os.WriteFile(s.Path("a"+Ready), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Read("a")
		all, errs := s.List(Ready)
		if errors.Is(err, fs.ErrNotExist) != void || IsDamaged(err) == void || len(all) != 0 || IsDamaged(errs) == void {
			t.Errorf("%q: %v; %v, %v", text, err, all, errs)
		}
	}
}

// A record's endings are the states of what it speaks of, and Forget leaves nothing of it.
func TestAStoreTurnsAndForgets(t *testing.T) {
	s := things(t)
	const making = ".making"
	if err := s.Save(thing{"a", 1}, making); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(Ready); err != nil || len(all) != 0 {
		t.Errorf("while it is made: %v, %v", all, err)
	}
	if err := s.Turn("a", making, Ready); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(Ready); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	lock, err := s.Hold("a")
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	if second, err := s.Hold("a"); second != nil || err != nil || !s.IsHeld("a") || s.IsHeld("b") {
		t.Errorf("one that is held: %v, %v", second, err)
	}
	lock.Unlock()
	if s.IsHeld("a") {
		t.Error("it is held still")
	}
	if err := errors.Join(s.Forget("a"), s.Forget("a")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(s.Dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The directory that all share lets everybody through, whoever made it first.
func TestAStoreRepairsItsDirectories(t *testing.T) {
	top := filepath.Join(t.TempDir(), "lib/weir")
	for _, first := range []os.FileMode{0o700, 0o711, 0o755, 0o777} {
		if err := errors.Join(os.MkdirAll(top, 0o700), os.Chmod(top, first)); err != nil {
			t.Fatal(err)
		}
		if err := (Folder{filepath.Join(top, "quotas"), 0o700}).Make(); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]os.FileMode{top: 0o711, filepath.Join(top, "quotas"): 0o700} {
			if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
				t.Errorf("%s was %v first: %v, %v", path, first, st.Mode(), err)
			}
		}
	}
}

func TestAFolderIsLockedByOne(t *testing.T) {
	f := Folder{filepath.Join(t.TempDir(), "weir/things"), 0o700}
	lock, err := f.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := f.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock, waited for: %v", err)
	}
	lock.Unlock()
	lock.Unlock() // once is enough: its descriptor may be another file's by now
	if lock, err = f.TryLock(); err != nil {
		t.Fatal(err)
	}
	lock.Unlock()
}

func TestOneOwns(t *testing.T) {
	d := at(t)
	lock, err := d.Own("pacer.lock")
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	if second, err := d.Own("pacer.lock"); err != nil || second != nil {
		t.Errorf("a second one: %v, %v", second, err)
	}
	lock.Unlock()
	if lock, err = d.Own("pacer.lock"); err != nil || lock == nil {
		t.Errorf("it is locked still: %v", err)
	}
	lock.Unlock()
}

// One damaged record is no reason to leave the others uncleaned, and stays for people to look at.
func TestSweepLeavesDamagedRecords(t *testing.T) {
	d := at(t)
	for _, v := range []any{thing{"a", 1}, "text", thing{"z", 2}} {
		r, err := d.New("run", v)
		if err == nil {
			err = r.Leave()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, want := range []int{2, 2} {
		err := Sweep(d, "run", func(thing) error { n++; return nil })
		if n != want || !IsDamaged(err) || strings.Count(err.Error(), "move it away") != 1 {
			t.Errorf("%d swept, want %d; %v", n, want, err)
		}
	}
	if all, err := All[thing](d, "run"); len(all) != 0 || !IsDamaged(err) {
		t.Errorf("%v, %v", all, err)
	}
}
