package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func at(t *testing.T) Dir { return Dir{filepath.Join(t.TempDir(), "weir")} }

func swept(t *testing.T, d Dir, answer error) []string {
	t.Helper()
	var got []string
	if err := Sweep(d, "run", func(s string) error {
		got = append(got, s)
		return answer
	}); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestARecordOfALivingOwnerIsNotSwept(t *testing.T) {
	d := at(t)
	r, err := d.New("run", "mine")
	if err != nil {
		t.Fatal(err)
	}
	if got := swept(t, d, nil); len(got) != 0 {
		t.Fatalf("swept %q while its owner lives", got)
	}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	if got := swept(t, d, ErrKeep); len(got) != 1 {
		t.Fatalf("swept %q, want the record that was left", got)
	}
	if got := swept(t, d, nil); len(got) != 1 {
		t.Fatalf("swept %q, want the record that was kept", got)
	}
	if got := swept(t, d, nil); len(got) != 0 {
		t.Fatalf("swept %q twice", got)
	}
}

// More names than are read at once are all listed.
func TestManyNames(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 4 * namesBytes / 64 {
		want = append(want, fmt.Sprintf("%04d-%s", i, strings.Repeat("x", 64)))
		if err := os.WriteFile(filepath.Join(dir, want[i]), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := namesIn(dir)
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v; want %d", len(got), err, len(want))
	}
	if _, err := namesIn(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no directory: %v", err)
	}
}

func TestDoneLeavesNothing(t *testing.T) {
	d := at(t)
	r, err := d.New("run", "mine")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Done(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(d.path); len(left) != 0 {
		t.Fatalf("left %v", left)
	}
}

func TestSweepGoesOnAfterAnError(t *testing.T) {
	d := at(t)
	for range 3 {
		r, err := d.New("run", "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	err := Sweep(d, "run", func(string) error { calls++; return errors.New("no") })
	if calls != 3 || err == nil {
		t.Fatalf("%d calls, error %v; want 3 and an error", calls, err)
	}
}

func TestADirectoryThatOthersCanWriteToIsRefused(t *testing.T) {
	d := at(t)
	if err := os.MkdirAll(d.path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(d.path, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := d.New("run", "x"); err == nil {
		t.Fatal("New: want an error")
	}
}

// childRecord keeps the garbage collector from closing the file that the lock is on.
var childRecord *Record

// A child process that is killed with SIGKILL loses its lock at once.
func TestARecordOfAKilledOwnerIsSwept(t *testing.T) {
	if path := os.Getenv("WEIR_STATE_CHILD"); path != "" {
		var err error
		if childRecord, err = (Dir{path}).New("run", "child"); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("ready\n")
		time.Sleep(time.Hour) // the runtime ends a process in which nothing can ever go on
	}
	d := at(t)
	child := exec.Command(os.Args[0], "-test.run", "^TestARecordOfAKilledOwnerIsSwept$")
	child.Env = append(os.Environ(), "WEIR_STATE_CHILD="+d.path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if got := swept(t, d, nil); len(got) != 0 {
		t.Fatalf("swept %q while the child lives", got)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if got := swept(t, d, nil); len(got) != 1 || got[0] != "child" {
		t.Fatalf("swept %q, want the child's record", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	d := at(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 50 {
				r, err := d.New("run", "x")
				if err != nil {
					t.Error(err)
					return
				}
				if err := Sweep(d, "run", func(string) error { t.Error("swept a living owner's record"); return nil }); err != nil {
					t.Error(err)
				}
				if err := r.Done(); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
}

// The records about one thing are found among many, and those that do not say what they are about too.
func TestRecordsAboutOneThing(t *testing.T) {
	d := at(t)
	for _, about := range []string{"a", "b", "a", ""} {
		var err error
		if about == "" {
			_, err = d.New("run", "any")
		} else {
			_, err = d.NewOf("run", about, about)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	some, err := d.NewOf("run", "a", "former")
	if err == nil {
		_, err = some.Replace("a")
	}
	if err != nil {
		t.Fatal(err)
	}
	for about, want := range map[string]int{"a": 4, "b": 2, "c": 1} {
		if got, err := AllOf[string](d, "run", about); err != nil || len(got) != want {
			t.Errorf("%s: %q, want %d, %v", about, got, want, err)
		}
	}
	if got, err := All[string](d, "run"); err != nil || len(got) != 5 {
		t.Errorf("%q of all, %v", got, err)
	}
}

// A link in the place of a record is a damaged one for All and Sweep alike.
func TestALinkIsNoRecord(t *testing.T) {
	d := at(t)
	r, err := d.New("run", "any")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("/dev/null", filepath.Join(d.Path(), "run.0.json")), r.Leave()); err != nil {
		t.Fatal(err)
	}
	if got, err := All[string](d, "run"); !IsDamaged(err) || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	swept := 0
	if err := Sweep(d, "run", func(string) error { swept++; return nil }); !IsDamaged(err) || err == nil || swept != 1 {
		t.Errorf("%d swept, %v", swept, err)
	}
}
