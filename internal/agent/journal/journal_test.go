package journal

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// begin runs a journal; end waits until it is written.
func begin(t *testing.T, j *Journal) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan bool)
	go func() { j.Run(ctx); close(done) }()
	return func() { stop(); <-done }
}

func named(i int) Entry {
	return Entry{By: ByWeird, What: Set, Target: "docker:" + strconv.Itoa(i), Plan: "small", Why: "new",
		Changes: []Change{{Device: blkdev.Number{Major: 8}, Node: "/dev/sda", From: limit.None, To: limit.None.With(limit.WBPS, limit.PerSecond(10))}}}
}

func read(t *testing.T, dir string, q Query) Log {
	t.Helper()
	l, err := Read(dir, q)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What is added is read, in its order, after a restart too, and is chosen by target, time and number.
func TestAddAndRead(t *testing.T) {
	lab.Unit(t)
	dir := filepath.Join(t.TempDir(), "a", "journal")
	if l := read(t, dir, Query{}); !reflect.DeepEqual(l, Log{}) {
		t.Errorf("nothing was written: %+v", l)
	}
	at := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	for run := range 2 {
		j := New(dir, slog.New(slog.DiscardHandler))
		end := begin(t, j)
		for i := range 3 {
			e := named(i)
			e.At = at.Add(time.Duration(3*run+i) * time.Minute)
			j.Add(e)
		}
		end()
	}
	l := read(t, dir, Query{})
	if len(l.Entries) != 6 || l.Torn != 0 || l.Lost != 0 {
		t.Fatalf("%+v", l)
	}
	want := named(2)
	want.At = at.Add(5 * time.Minute)
	if !reflect.DeepEqual(l.Entries[5], want) {
		t.Errorf("%+v\nwant\n%+v", l.Entries[5], want)
	}
	for _, q := range []struct {
		Query
		want string
	}{
		{Query{Target: "docker:1"}, "1 4"},
		{Query{Since: at.Add(4 * time.Minute)}, "4 5"},
		{Query{Most: 2}, "4 5"},
		{Query{Target: "docker:none"}, ""},
	} {
		var got []string
		for _, e := range read(t, dir, q.Query).Entries {
			got = append(got, fmt.Sprint(e.At.Sub(at).Minutes()))
		}
		if strings.Join(got, " ") != q.want {
			t.Errorf("%+v: %v, want %s", q.Query, got, q.want)
		}
	}
	if l := read(t, dir, Query{Most: 2}); l.LeftOut != 4 {
		t.Errorf("%d left out", l.LeftOut)
	}
	info, err := os.Stat(filepath.Join(dir, newer))
	if err != nil || info.Mode().Perm() != fileMode {
		t.Errorf("%v, %v", info, err)
	}
}

// Two files of bounded size are all that there ever is, and the newest entries are in them, without a gap.
func TestItStaysSmall(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	j := New(dir, slog.New(slog.DiscardHandler))
	j.most = 4 << 10
	end := begin(t, j)
	const n = 300
	for i := range n {
		j.Add(named(i))
	}
	for began := time.Now(); len(j.queue) > 0 && time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		// Run does not wait at its end for a disk as slow as that of a busy machine, which syncs for each exchange of the files.
	}
	end()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Size() > j.most {
			t.Errorf("%v, %v", info, err)
		}
	}
	l := read(t, dir, Query{})
	if len(l.Entries) < 10 || l.Lost != 0 || l.Torn != 0 {
		t.Fatalf("%+v", l)
	}
	for i, e := range l.Entries {
		if want := "docker:" + strconv.Itoa(n-len(l.Entries)+i); e.Target != want {
			t.Fatalf("entry %d is %s, want %s", i, e.Target, want)
		}
	}
}

// Whatever a crash leaves of the last lines, all others are read, and new ones after them.
func TestTornLines(t *testing.T) {
	lab.Unit(t)
	whole, err := encode(named(1))
	if err != nil {
		t.Fatal(err)
	}
	for name, torn := range map[string]string{
		"half a line":      string(whole[:len(whole)/2]),
		"all but its end":  string(whole[:len(whole)-1]),
		"zeros":            string(make([]byte, 3*lineMost)),
		"another's middle": string(whole[:30]) + "xx" + string(whole[32:]),
		"no sum":           "{}\n",
		"far too long":     strings.Repeat("x", 3*lineMost) + "\n",
		"nothing":          "",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, newer), append(whole, torn...), fileMode); err != nil {
			t.Fatal(err)
		}
		j := New(dir, slog.New(slog.DiscardHandler))
		end := begin(t, j)
		j.Add(named(2))
		end()
		l := read(t, dir, Query{})
		got, want := uint64(len(l.Entries)), uint64(2)
		if name == "all but its end" { // nothing of it is missing
			want = 3
		}
		bad := want == 2 && torn != ""
		if got != want || (l.Torn > 0) != bad || l.Entries[got-1].Target != "docker:2" {
			t.Errorf("%s: %d entries, %d torn", name, got, l.Torn)
		}
	}
}

// A torn line at the end of a full file is counted once, and not in the next file again.
func TestTornAtTheEnd(t *testing.T) {
	lab.Unit(t)
	j := New(t.TempDir(), slog.New(slog.DiscardHandler))
	whole, err := encode(named(1))
	if err != nil {
		t.Fatal(err)
	}
	j.most = int64(len(whole)) + 20
	if err := os.WriteFile(filepath.Join(j.dir, newer), append(whole, whole[:20]...), fileMode); err != nil {
		t.Fatal(err)
	}
	j.write(named(2))
	j.shut()
	if l := read(t, j.dir, Query{}); len(l.Entries) != 2 || l.Torn != 0 { // the last line of a file is taken for one that is being written
		t.Errorf("%d entries, %d torn", len(l.Entries), l.Torn)
	}
}

// A reader beside a writer sees each entry once, in order, though the files are exchanged all the time.
func TestReadWhileWritten(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	j := New(dir, slog.New(slog.DiscardHandler))
	j.most = 2 << 10
	end := begin(t, j)
	var writing sync.WaitGroup
	stop := make(chan bool)
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				j.Add(named(i))
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	last, seen := -1, 0
	for deadline := time.Now().Add(20 * time.Second); seen < 50 && time.Now().Before(deadline); {
		l := read(t, dir, Query{})
		if l.Torn != 0 {
			t.Fatalf("%d torn", l.Torn)
		}
		before := -1
		for i, e := range l.Entries {
			n, err := strconv.Atoi(strings.TrimPrefix(e.Target, "docker:"))
			if err != nil || i > 0 && n != before+1 {
				t.Fatalf("%d comes after %d (%v)", n, before, err)
			}
			before = n
		}
		if before > last {
			last = before
			seen++
		}
	}
	close(stop)
	writing.Wait()
	end()
	if seen < 50 {
		t.Errorf("the reader saw it grow %d times", seen)
	}
}

// A disk that is full loses entries, which are counted, and delays nobody.
func TestADiskThatIsFull(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	var log strings.Builder
	j := New(filepath.Join(dir, "journal"), slog.New(slog.NewTextHandler(&log, nil)))
	if err := os.WriteFile(j.dir, nil, 0o600); err != nil { // no directory can be made there
		t.Fatal(err)
	}
	j.write(named(0))
	j.write(named(1))
	if err := os.Remove(j.dir); err != nil {
		t.Fatal(err)
	}
	j.write(named(2))
	j.shut()
	l := read(t, j.dir, Query{})
	if len(l.Entries) != 1 || l.Lost != 2 || strings.Count(log.String(), "\n") != 2 {
		t.Errorf("%+v\n%s", l, log.String())
	}
}

// Add does not wait though nothing is written, and what is too much is counted.
func TestAddDoesNotWait(t *testing.T) {
	lab.Unit(t)
	j := New(t.TempDir(), slog.New(slog.DiscardHandler))
	for i := range queueMost + 5 {
		j.Add(named(i))
	}
	end := begin(t, j)
	end()
	if l := read(t, j.dir, Query{}); len(l.Entries) != queueMost || l.Lost != 5 {
		t.Errorf("%d entries, %d lost", len(l.Entries), l.Lost)
	}
}

// What others name is cut, and a file that is removed or no file does no harm.
func TestHostileEntriesAndFiles(t *testing.T) {
	lab.Unit(t)
	j := New(t.TempDir(), slog.New(slog.DiscardHandler))
	e := named(0)
	e.Target, e.Why = strings.Repeat("\x00", 1<<20), "a\nb"
	for range 1000 {
		e.Changes = append(e.Changes, Change{Node: strings.Repeat("\x01", 1<<16)})
	}
	j.write(e)
	if err := os.Remove(filepath.Join(j.dir, newer)); err != nil {
		t.Fatal(err)
	}
	j.write(e)
	j.shut()
	l := read(t, j.dir, Query{})
	if len(l.Entries) != 1 || l.Entries[0].Why != "a\nb" || len(l.Entries[0].Target) > textMost+3 {
		t.Fatalf("%d entries, %d torn", len(l.Entries), l.Torn)
	}
	if target := strings.Repeat("ü", textMost); cut("x"+target) != "x"+target[:textMost-2]+"…" {
		t.Error("a character is cut in two")
	}
	if err := unix.Mkfifo(filepath.Join(j.dir, older), 0o600); err != nil {
		t.Fatal(err)
	}
	if l := read(t, j.dir, Query{}); len(l.Entries) != 1 {
		t.Errorf("%d entries beside a pipe", len(l.Entries))
	}
	writer, err := os.OpenFile(filepath.Join(j.dir, older), os.O_RDWR, 0) // a pipe that somebody may write to at any time
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	done := make(chan error, 1)
	go func() { _, err := Read(j.dir, Query{}); done <- err }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a pipe's writer")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(j.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(j.dir, "link"), filepath.Join(j.dir, newer)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(j.dir, Query{}); err == nil {
		t.Error("a link is read")
	}
	j.write(e)
	if j.lost == 0 {
		t.Error("a link is written to")
	}
}

const killedVariable = "WEIR_TEST_JOURNAL"

// TestKilled is the process that TestKills kills.
func TestKilled(t *testing.T) {
	dir := os.Getenv(killedVariable)
	if dir == "" {
		return // only TestKills starts it
	}
	j := New(dir, slog.New(slog.DiscardHandler))
	j.most = 8 << 10
	go j.Run(context.Background())
	for i := 0; ; i++ {
		j.Add(named(i))
		if i%100 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// After each kill at some moment all whole lines are read, and at most one line is torn each time.
func TestKills(t *testing.T) {
	lab.Unit(t)
	dir := t.TempDir()
	const kills = 5
	for i := range kills {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
		cmd.Env = append(os.Environ(), killedVariable+"="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(20 * time.Second)
		for time.Now().Before(deadline) {
			if info, err := os.Stat(filepath.Join(dir, newer)); err == nil && info.Size() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(i) * 3 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		l := read(t, dir, Query{})
		if len(l.Entries) == 0 || l.Torn > kills {
			t.Fatalf("%d entries, %d torn", len(l.Entries), l.Torn)
		}
	}
}

// FuzzRead: whatever the files have, reading ends, and what it returns was written by somebody who
// knows how.
func FuzzRead(f *testing.F) {
	line, err := encode(named(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line, []byte{})
	f.Add([]byte("00000000 {}\n"), line[:20])
	f.Add([]byte{0, '\n'}, []byte("\n\n\n"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for name, text := range map[string][]byte{older: a, newer: b} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Read(dir, Query{Most: 3}); err != nil {
			t.Error(err)
		}
	})
}
