package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
)

// large is small with the other plan, in two parts. The first has no assignment, and is a valid file of its own.
var largeDefinition, largeAssignment, _ = strings.Cut(strings.Replace(small, "plan: small", "plan: large", 1), "\n")

// begin opens a file of plans as editors and cp do that write in place, writes to it, and leaves it open.
func (d *tested) begin(name, text string) *os.File {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.plans, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = f.Close() })
	if _, err := io.WriteString(f, text); err != nil {
		d.t.Fatal(err)
	}
	return f
}

// A file that is being written is no file of plans yet, neither when it changes nor when another one does. It is read as soon
// as it is closed.
func TestPlansThatAreBeingWritten(t *testing.T) {
	for name, step := range map[string]struct {
		file string
		also func(d *tested) error
	}{
		"in place": {"a.yaml", func(d *tested) error {
			return os.WriteFile(d.plans+"/b.yaml", []byte("plans: {b: {read: 1MB/s}}\n"), 0o600)
		}},
		"a new file":       {"b.yaml", func(d *tested) error { return os.Remove(d.plans + "/a.yaml") }},
		"an emptied file":  {"a.yaml", nil},
		"a new empty file": {"b.yaml", func(d *tested) error { return os.Rename(d.plans+"/a.yaml", d.plans+"/a.bak") }},
	} {
		t.Run(name, func(t *testing.T) {
			d := start(t, small)
			d.until("in force", has("small", reconcile.InForce))
			before, after := largeDefinition+"\n", largeAssignment
			if strings.Contains(name, "empt") {
				before, after = "", before+after
			}
			f := d.begin(step.file, before)
			if step.also != nil {
				if err := step.also(d); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 { // it is quiet for longer than weird waits for
				time.Sleep(settleTime)
				if s := d.Status(); !has("small", reconcile.InForce)(s) || s.PlansError != "" || d.says("limits removed") {
					t.Fatalf("half a file is in force: %+v\n%s", s, d.told())
				}
			}
			if _, err := io.WriteString(f, after); err != nil {
				t.Fatal(err)
			}
			closed := time.Now()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			d.until("large", has("large", reconcile.InForce))
			if took := time.Since(closed); took > settleMost/2 {
				t.Errorf("the plans are in force %v after their file was closed", took)
			}
			if d.says("limits removed") || d.says("still being written") {
				t.Error(d.told())
			}
		})
	}
}

// Who never closes a file, or changes files without an end, keeps plans from being loaded for a time only.
func TestPlansThatDoNotSettle(t *testing.T) {
	for name, says := range map[string]string{"open": "some files of the plans are still being written", "noise": "the files of the plans change all the time"} {
		t.Run(name, func(t *testing.T) {
			d := prepare(t, small)
			d.settleMost = 3 * settleTime
			d.start()
			d.until("in force", has("small", reconcile.InForce))
			if name == "open" {
				d.begin("a.yaml", largeDefinition+"\n"+largeAssignment)
			} else {
				stop, stopped := make(chan bool), make(chan error, 1)
				go func() {
					var err error
					for more := true; more; {
						err = errors.Join(err, os.WriteFile(d.plans+"/noise.txt", nil, 0o600))
						select {
						case <-stop:
							more = false
						case <-time.After(settleTime / 10):
						}
					}
					stopped <- err
				}()
				defer func() {
					close(stop)
					if err := <-stopped; err != nil {
						t.Error(err)
					}
				}()
				d.write(largeDefinition + "\n" + largeAssignment)
			}
			d.until("large", has("large", reconcile.InForce))
			d.until("said", func(Status) bool { return d.says(says) })
			time.Sleep(2 * d.settleMost)
			if text := d.told(); strings.Count(text, says) != 1 || strings.Count(text, "level=INFO msg=\"plans loaded\"") > 3 {
				t.Error(text)
			}
		})
	}
}

// Of the events of a directory, those that a file of the plans is being written are counted, and its end is known.
func TestWhoWrites(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there.yaml"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := watchDir(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	at := func(name string) string { return filepath.Join(dir, name) }
	var open []*os.File
	begin := func(name, text string) error {
		f, err := os.Create(at(name))
		if err != nil {
			return err
		}
		open = append(open, f)
		_, err = f.WriteString(text)
		return err
	}
	for i, step := range []struct {
		do   func() error
		news bool
		want string
	}{
		{func() error { return os.Link(at("there.yaml"), at("link.yaml")) }, true, ""},
		{func() error { return os.Symlink("nowhere", at("soft.yaml")) }, true, ""},
		{func() error { return os.Mkdir(at("dir.yaml"), 0o700) }, true, ""},
		{func() error { return begin("made.yaml", "") }, true, "made.yaml"},
		{func() error { return begin("b.yml", "x") }, true, "b.yml made.yaml"},
		{func() error { return os.Rename(at("b.yml"), at("b.txt")) }, true, "made.yaml"},
		{func() error { _, err := open[1].WriteString("x"); return err }, false, "made.yaml"},
		{func() error { return os.Rename(at("b.txt"), at("c.yaml")) }, true, "made.yaml"},
		{func() error { _, err := open[1].WriteString("x"); return err }, true, "c.yaml made.yaml"},
		{func() error { return open[1].Close() }, true, "made.yaml"},
		{func() error { return os.Remove(at("made.yaml")) }, true, ""},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		news, err := w.read()
		if got := strings.Join(w.writers(), " "); err != nil || news != step.news || got != step.want || w.gone {
			t.Errorf("%d: news %t, %q, gone: %t, %v; want %t, %q", i, news, got, w.gone, err, step.news, step.want)
		}
	}
	if w.file = "one"; !w.isPlan("one") || w.isPlan("a.yaml") {
		t.Error("a file that is named alone is not the only one that counts")
	}
}
