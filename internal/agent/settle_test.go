package agent

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/plans"
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

// again calls a function again and again, until what it returns is called.
func (d *tested) again(do func() error) (end func()) {
	stop, stopped := make(chan bool), make(chan error, 1)
	go func() {
		var err error
		for more := true; more; {
			err = errors.Join(err, do())
			select {
			case <-stop:
				more = false
			case <-time.After(settleTime / 10):
			}
		}
		stopped <- err
	}()
	return func() {
		close(stop)
		if err := <-stopped; err != nil {
			d.t.Error(err)
		}
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
				defer d.again(func() error {
					return errors.Join(os.WriteFile(d.plans+"/noise.txt", nil, 0o600), os.Rename(d.plans+"/noise.txt", d.plans+"/noise.yaml"))
				})()
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

// Other files of the directory, as those of /tmp, keep no plans from being loaded, whoever writes, makes and removes them.
func TestPlansBesideOtherFiles(t *testing.T) {
	d := start(t, small)
	d.until("in force", has("small", reconcile.InForce))
	noise := d.begin("noise.log", "x")
	defer d.again(func() error {
		_, err := noise.WriteString("x")
		return errors.Join(err, os.WriteFile(d.plans+"/noise.txt", nil, 0o600), os.Remove(d.plans+"/noise.txt"))
	})()
	written := time.Now()
	d.write(largeDefinition + "\n" + largeAssignment)
	d.until("large", has("large", reconcile.InForce))
	if took := time.Since(written); took > settleMost/2 || d.says("level=WARN") {
		t.Errorf("the plans are in force after %v\n%s", took, d.told())
	}
}

// A file that nobody closes is waited for once, and not with each change of another one.
func TestPlansAfterOneThatStaysOpen(t *testing.T) {
	d := prepare(t, small)
	d.settleMost = 5 * settleTime
	d.start()
	d.until("in force", has("small", reconcile.InForce))
	d.begin("b.yaml", "plans: {}\n")
	if err := errors.Join(os.WriteFile(d.plans+"/empty.txt", nil, 0o600), os.Link(d.plans+"/empty.txt", d.plans+"/c.yaml")); err != nil {
		t.Fatal(err)
	}
	d.until("said", func(Status) bool { return d.says("b.yaml c.yaml") })
	d.until("loaded", func(s Status) bool { return len(s.Files) == 3 })
	written := time.Now()
	d.write(largeDefinition + "\n" + largeAssignment)
	d.until("large", has("large", reconcile.InForce))
	if took := time.Since(written); took >= d.settleMost {
		t.Errorf("the plans are in force after %v", took)
	}
}

// A file that is closed shortly before weird would wait no longer has been quiet soon after.
func TestPlansThatAreClosedLate(t *testing.T) {
	d := prepare(t, small)
	d.settleMost = 4 * settleTime
	d.start()
	d.until("in force", has("small", reconcile.InForce))
	f := d.begin("a.yaml", largeDefinition+"\n"+largeAssignment)
	begun := time.Now()
	time.Sleep(d.settleMost - settleTime/2)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Since(begun)
	d.until("large", has("large", reconcile.InForce))
	if d.says("level=WARN") && closed < d.settleMost-settleTime/10 { // else this machine was slower than weird waits
		t.Error(d.told())
	}
}

// A file whose writing begins while the plans are read is not taken as it was then.
func TestPlansThatChangeWhileTheyAreRead(t *testing.T) {
	d := prepare(t, small)
	read := d.options.Read
	begun := make(chan *os.File, 1)
	var once sync.Once
	d.options.Read = func(files []plans.File) (*plans.Config, error) {
		if len(files) > 1 {
			once.Do(func() {
				begun <- d.begin("a.yaml", "")
				files[0].Text = nil
			})
		}
		return read(files)
	}
	d.start()
	d.until("in force", has("small", reconcile.InForce))
	if err := os.WriteFile(d.plans+"/b.yaml", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := <-begun
	for range 4 {
		time.Sleep(settleTime)
		if s := d.Status(); !has("small", reconcile.InForce)(s) || s.PlansError != "" || d.says("limits removed") {
			t.Fatalf("half a file is in force: %+v\n%s", s, d.told())
		}
	}
	if _, err := io.WriteString(f, largeDefinition+"\n"+largeAssignment); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.until("large", has("large", reconcile.InForce))
	if d.says("limits removed") || d.says("level=WARN") {
		t.Error(d.told())
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
		news news
		want string
	}{
		{func() error { return os.Link(at("there.yaml"), at("link.yaml")) }, changed, ""},
		{func() error { return os.Symlink("nowhere", at("soft.yaml")) }, changed, ""},
		{func() error { return os.Mkdir(at("dir.yaml"), 0o700) }, changed, ""},
		{func() error { return begin("made.yaml", "") }, changed, "made.yaml"},
		{func() error { return begin("b.yml", "x") }, changed, "b.yml made.yaml"},
		{func() error { return os.Rename(at("b.yml"), at("b.txt")) }, changed, "made.yaml"},
		{func() error { _, err := open[1].WriteString("x"); return err }, nothing, "made.yaml"},
		{func() error { return os.Rename(at("b.txt"), at("c.yaml")) }, changed, "made.yaml"},
		{func() error { _, err := open[1].WriteString("x"); return err }, changed, "c.yaml made.yaml"},
		{func() error { return open[1].Close() }, changed, "made.yaml"},
		{func() error { return os.Remove(at("made.yaml")) }, changed, ""},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		news, err := w.read()
		if got := strings.Join(w.writers(), " "); err != nil || news != step.news || got != step.want || w.gone {
			t.Errorf("%d: news %d, %q, gone: %t, %v; want %d, %q", i, news, got, w.gone, err, step.news, step.want)
		}
	}
	if w.file = "one"; !w.isPlan("one") || w.isPlan("a.yaml") {
		t.Error("a file that is named alone is not the only one that counts")
	}
}

// Files that are no plans count where a plan is a link, for it may lead to them, as in the directory of a ConfigMap. Where
// none is, one that goes may be the last of a directory that is being removed.
func TestWhichFilesCount(t *testing.T) {
	dir := t.TempDir()
	w, err := watchDir(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	at := func(name string) string { return filepath.Join(dir, name) }
	other := func() error { return os.WriteFile(at("other.txt"), []byte("x"), 0o600) }
	for i, step := range []struct {
		do   func() error
		want news
	}{
		{other, nothing},
		{other, nothing},
		{func() error { return os.Rename(at("other.txt"), at(".data_new")) }, removed},
		{func() error { return os.Rename(at(".data_new"), at(".data")) }, removed},
		{func() error { return os.Symlink(".data", at("a.yaml")) }, changed},
		{other, changed},
		{func() error { return os.Rename(at("other.txt"), at(".data")) }, changed},
		{func() error { return os.Remove(at("a.yaml")) }, changed},
		{other, nothing},
		{func() error { return os.Remove(at("other.txt")) }, removed},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if its, err := w.pending(); err != nil || its != step.want {
			t.Errorf("%d: %d, %v; want %d", i, its, err, step.want)
		}
	}
	if its, err := w.pending(); err != nil || its != nothing {
		t.Errorf("without an event: %d, %v", its, err)
	}
}
