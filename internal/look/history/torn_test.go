package history

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unique"

	"golang.org/x/sys/unix"
)

// Whatever part of a file a crash has not written or spoilt, the rest is read, and recording goes on.
func TestTornWrites(t *testing.T) {
	dir := t.TempDir()
	levels := small()
	record1(t, dir, levels, 0, 900)
	path := filepath.Join(dir, levels[0].nameOf())
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := len(all(t, reader(t, dir).rings[0]))
	for at := headSize; at < len(good); at += 2003 {
		torn := append([]byte(nil), good...)
		for i := at; i < min(at+512, len(torn)); i++ {
			torn[i] ^= byte(i*7 + 1)
		}
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		got := all(t, reader(t, dir).rings[0])
		if len(got) < whole/2 {
			t.Fatalf("torn at %d: %d of %d are left", at, len(got), whole)
		}
		for _, s := range got {
			if n := int(s.At.Sub(start).Seconds()); !reflect.DeepEqual(s, kept(seen(n))) {
				t.Fatalf("torn at %d: %d is\n%s", at, n, show(s))
			}
		}
		record1(t, dir, levels, 900, 910)
		if again := all(t, reader(t, dir).rings[0]); again[len(again)-1].At.Sub(start) != 909*time.Second {
			t.Fatalf("torn at %d: recording ended at %s", at, again[len(again)-1].At)
		}
	}
}

// A file of another version, or that is none, is refused with a reason and left alone.
func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	record1(t, dir, small(), 0, 3)
	path := filepath.Join(dir, small()[0].nameOf())
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func([]byte) []byte{
		"version 2":                     func(b []byte) []byte { b[8] = 2; return b },
		"it is not a":                   func(b []byte) []byte { return []byte("x") },
		"damaged":                       func(b []byte) []byte { b[12]++; return b },
		"not a history that weir wrote": func([]byte) []byte { return nil },
		"0 blocks of 0 bytes,":          func(b []byte) []byte { copy(b, Level{}.head()); return b },
	} {
		bad := change(append([]byte(nil), good...))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, readErr := Open(dir)
		_, err := Record(dir, small())
		if err == nil || readErr == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v, %v", what, err, readErr)
		}
		if is, err := os.ReadFile(path); err != nil || string(is) != string(bad) {
			t.Errorf("%s: it was changed: %v", what, err)
		}
	}
}

// What is no file in the place of one is refused, and neither waited for nor read: a pipe, a device behind a link,
// a directory.
func TestOtherThanFiles(t *testing.T) {
	for what, place := range map[string]func(path string) error{
		"it is no regular file; move it away": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"is a directory":                      func(path string) error { return os.Mkdir(path, 0o700) },
		"it is a symbolic link":               func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		for _, name := range []string{"1s.weirhist", "1s.weirhist.new"} {
			dir := t.TempDir()
			if err := place(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			told := func(how func() error) {
				t.Helper()
				done := make(chan error, 1)
				go func() { done <- how() }()
				select {
				case err := <-done:
					if err == nil || name == "1s.weirhist" && !strings.Contains(err.Error(), what) && !strings.Contains(err.Error(), "no regular file") {
						t.Errorf("%s: %v", what, err)
					}
				case <-time.After(10 * time.Second):
					t.Fatalf("%s: it is waited for", what)
				}
			}
			told(func() error { _, err := Open(dir); return err })
			told(func() error { _, err := Record(dir, small()); return err })
		}
	}
}

// fullDisk is a file on a disk that is full from time to time, and then takes a part of what is written.
type fullDisk struct {
	file
	n int
}

func (f *fullDisk) WriteAt(b []byte, at int64) (int, error) {
	if f.n++; f.n%3 != 0 {
		n, err := f.file.WriteAt(b[:len(b)/2], at)
		return n, errors.Join(err, errors.New("no space left on device"))
	}
	return f.file.WriteAt(b, at)
}

// What a full disk does not take is lost, and nothing else.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	r, err := Record(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	r.writers[0].f = &fullDisk{file: r.writers[0].f}
	took := map[int]bool{}
	for n := range 400 {
		if err := r.Add(seen(n)); err == nil {
			took[n] = true
		}
	}
	got := all(t, reader(t, dir).rings[0])
	if len(got) != len(took) || len(took) < 100 {
		t.Errorf("%d are there, %d were taken", len(got), len(took))
	}
	for _, s := range got {
		if n := int(s.At.Sub(start).Seconds()); !took[n] || !reflect.DeepEqual(s, kept(seen(n))) {
			t.Fatalf("%d (%v):\n%s", n, took[n], show(s))
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// A record that this weir cannot read ends what it writes into a block, and what follows it is left there.
func TestRecordsOfAnotherWeirStay(t *testing.T) {
	l := small()[0]
	disk := &memory{text: append(l.head(), make([]byte, l.size()-headUsed)...)}
	r := &ring{f: disk, name: "ring", Level: l}
	w, err := goOn(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.append(time.Unix(1e9, 0), time.Second, nil); err != nil {
		t.Fatal(err)
	}
	other := append(record(w.round, []byte{0xff}), record(w.round, []byte("more"))...)
	at := w.offset(w.place(w.round)) + int64(w.used)
	copy(disk.text[at:], other)
	if w, err = goOn(r); err != nil || !w.foreign {
		t.Fatalf("%v, foreign: %v", err, w.foreign)
	}
	if got := disk.text[at:][:len(other)]; !bytes.Equal(got, other) {
		t.Errorf("what follows is %x, want %x", got, other)
	}
	was := w.round
	if err := w.append(time.Unix(1e9+1, 0), time.Second, nil); err != nil || w.round != was+1 {
		t.Errorf("the next frame is in round %d: %v", w.round, err)
	}
}

// Files that are lost while weir records in them are noticed, and it goes on in others.
func TestLostFiles(t *testing.T) {
	for what, lose := range map[string]func(dir, path string) error{
		"removed":       func(_, path string) error { return os.Remove(path) },
		"with its dir":  func(dir, _ string) error { return os.RemoveAll(dir) },
		"exchanged":     func(_, path string) error { return create(path, small()[0]) },
		"its head lost": func(_, path string) error { return os.Truncate(path, 0) },
	} {
		dir := filepath.Join(t.TempDir(), "history")
		r, err := Record(dir, small())
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, small()[0].nameOf())
		told := ""
		for n := range 60 {
			if n == 15 {
				err = lose(dir, path)
			}
			if err != nil {
				t.Fatal(err)
			}
			if wrong := r.Add(seen(n)); wrong != nil {
				told += wrong.Error()
				if strings.Contains(wrong.Error(), "move it away") {
					err = os.RemoveAll(path) // as it says, each time
				}
			}
		}
		if !strings.Contains(told, path+" was removed, exchanged or cut") {
			t.Errorf("%s: told %q", what, told)
		}
		if got := all(t, reader(t, dir).rings[0]); len(got) < 25 || !reflect.DeepEqual(got[len(got)-1], kept(seen(59))) {
			t.Errorf("%s: %d are there", what, len(got))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A copy with holes, or one that was cut, gets its room before weir goes on in it.
func TestRoomOfACopy(t *testing.T) {
	dir := t.TempDir()
	record1(t, dir, small(), 0, 3)
	l := small()[0]
	path := filepath.Join(dir, l.nameOf())
	if err := errors.Join(os.Truncate(path, headSize+4096), os.Truncate(path, headSize+8192)); err != nil {
		t.Fatal(err)
	}
	record1(t, dir, small(), 3, 6)
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Size != l.size() || st.Blocks*512 < l.size() {
		t.Errorf("%d bytes in %d of room, want %d: %v", st.Size, st.Blocks*512, l.size(), err)
	}
	if got := all(t, reader(t, dir).rings[0]); len(got) != 6 {
		t.Errorf("%d are there", len(got))
	}
}

// A file of a few megabytes whose names share their beginnings does not take gigabytes of memory.
func TestMemoryOfNames(t *testing.T) {
	e := newEncoder(start)
	long := strings.Repeat("x", textMost-8)
	points := make([]point, 60_000)
	for i := range points {
		points[i] = point{series: unique.Make(def{kind: ofGroup, path: fmt.Sprintf("%s%08d", long, i)})}
	}
	text := e.frame(start, time.Second, points)
	if len(text) > blockMost {
		t.Fatalf("a block cannot have a frame of %d bytes", len(text))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := newDecoder(start, nil).frame(text)
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(points) // else the collector decides whether each name is made once or twice
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errNoFrame) || took > 2*namesMost {
		t.Errorf("%v; %d MB for a frame of %d kB", err, took>>20, len(text)>>10)
	}
	if _, err := levelOf("file", Level{time.Second, 64 << 20, 2}.head()); err == nil {
		t.Error("blocks of 64 MB are taken")
	}
}
