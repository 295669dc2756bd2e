package state

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever is in the place of a record, the others are read, and the reader neither hangs
// nor fills memory.
func TestAStoreLeavesOutWhatIsNoRecord(t *testing.T) {
	s := Store{filepath.Join(t.TempDir(), "weir/things"), 0o700}
	if err := s.Make(); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(s.Dir, name) }
	if err := errors.Join(s.Save("a.json", "a.new", "first"), s.Save("z.json", "z.new", "last"), os.WriteFile(in("b.json"), []byte("{"), 0o600),
		unix.Mkfifo(in("c.json"), 0o600), os.Symlink("/dev/zero", in("d.json")), os.Mkdir(in("e.json"), 0o700), os.WriteFile(in("f.json"), make([]byte, recordMost+1), 0o600)); err != nil {
		t.Fatal(err)
	}
	var got []string
	read := make(chan error, 1)
	go func() {
		read <- s.List(".json", func(name string, data []byte) error {
			if data[0] != '"' {
				return errors.New("no text")
			}
			got = append(got, name)
			return nil
		})
	}()
	select {
	case err := <-read:
		for _, name := range []string{"b", "c", "d", "e", "f"} {
			if err == nil || !strings.Contains(err.Error(), in(name+".json")) {
				t.Errorf("%s is not named: %v", name, err)
			}
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it hangs")
	}
	if !reflect.DeepEqual(got, []string{"a", "z"}) {
		t.Errorf("read %q", got)
	}
}

// The directory that all share lets everybody through, whoever made it first.
func TestAStoreRepairsItsDirectories(t *testing.T) {
	top := filepath.Join(t.TempDir(), "lib/weir")
	for _, first := range []os.FileMode{0o700, 0o711, 0o755, 0o777} {
		if err := errors.Join(os.MkdirAll(top, 0o700), os.Chmod(top, first)); err != nil {
			t.Fatal(err)
		}
		if err := (Store{filepath.Join(top, "quotas"), 0o700}).Make(); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]os.FileMode{top: 0o711, filepath.Join(top, "quotas"): 0o700} {
			if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
				t.Errorf("%s was %v first: %v, %v", path, first, st.Mode(), err)
			}
		}
	}
}

func TestAStoreIsLockedByOne(t *testing.T) {
	s := Store{filepath.Join(t.TempDir(), "weir/things"), 0o700}
	unlock, err := s.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.TryLock(); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	if unlock, err = s.TryLock(); err != nil {
		t.Fatal(err)
	}
	unlock()
}
