package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/lab"
)

// A trouble that lasts is told once, whatever it is, and again when it comes back.
func TestTroubleIsToldOnce(t *testing.T) {
	lab.Unit(t)
	told := ""
	for i, step := range []struct {
		err  error
		news bool
	}{
		{tree.NoInstance(), true}, {tree.NoInstance(), false}, {tree.NoInstance(), false},
		{fs.ErrNotExist, true}, {&fs.PathError{Op: "watch", Path: "/etc/weir", Err: unix.ENOENT}, false},
		{tree.NoInstance(), true}, {nil, true}, {nil, false}, {tree.NoInstance(), true}, {tree.NoInstance(), false},
	} {
		if news := isNews(&told, step.err); news != step.news {
			t.Errorf("%d, %v: news %t", i, step.err, news)
		}
	}
}

// told is the log.
func (d *tested) told() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

func (d *tested) says(text string) bool { return strings.Contains(d.told(), text) }

// away waits until weird says that the plans are away, and checks that they are kept.
func (d *tested) away(plan string) {
	d.t.Helper()
	d.until("away", func(s Status) bool { return strings.Contains(s.PlansError, "no such file or directory") })
	if s := d.Status(); !has(plan, reconcile.InForce)(s) || len(s.Files) == 0 || !d.says("plans not loaded") {
		d.t.Errorf("%+v\n%s", s, d.told())
	}
}

// Who exchanges the directory of the plans takes the old one away first. Until all files of the new one are there, the
// former plans stay, and weird says so.
func TestPlansThatAreAway(t *testing.T) {
	for name, plans := range map[string]string{"usual": "", "named": filepath.Join(t.TempDir(), "plans.d")} {
		t.Run(name, func(t *testing.T) {
			d := prepareAt(t, plans, small)
			d.start()
			d.until("in force", has("small", reconcile.InForce))
			if err := os.RemoveAll(d.plans); err != nil {
				t.Fatal(err)
			}
			d.away("small")
			if s := d.Status(); strings.Contains(s.PlansError, "make it an empty directory") != (plans == "") || d.says("limits removed") {
				t.Errorf("%s\n%s", s.PlansError, d.told())
			}
			// It is copied as slowly as a busy machine copies. Without its second file no target has a plan.
			definition, assignment, _ := strings.Cut(strings.Replace(small, "plan: small", "plan: large", 1), "\n")
			last := time.Now()
			longest := time.Duration(0)
			for _, step := range []func() error{
				func() error { return os.Mkdir(d.plans, 0o700) },
				func() error { return os.WriteFile(d.plans+"/a.yaml", []byte(definition), 0o600) },
				func() error { return os.WriteFile(d.plans+"/b.yaml", []byte(assignment), 0o600) },
			} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
				longest, last = max(longest, time.Since(last)), time.Now()
				time.Sleep(settleTime * 3 / 2)
			}
			d.until("large", func(s Status) bool { return has("large", reconcile.InForce)(s) && s.PlansError == "" })
			if took := time.Since(last); took > absentTime/2 {
				t.Errorf("the new plans are in force after %v", took)
			}
			if d.says("limits removed") && longest < arrivedTime { // else this machine was slower than weird waits
				t.Errorf("a directory that is being copied was taken for whole:\n%s", d.told())
			}
			// The same ones come back.
			if err := os.Rename(d.plans, d.plans+".old"); err != nil {
				t.Fatal(err)
			}
			d.away("large")
			if err := os.Rename(d.plans+".old", d.plans); err != nil {
				t.Fatal(err)
			}
			d.until("back", func(s Status) bool { return has("large", reconcile.InForce)(s) && s.PlansError == "" })
			// An empty directory is a wish to have none.
			if err := errors.Join(os.RemoveAll(d.plans), os.Mkdir(d.plans, 0o700)); err != nil {
				t.Fatal(err)
			}
			d.until("none", func(s Status) bool { return len(s.Files) == 0 && s.PlansError == "" && d.says("limits removed") })
		})
	}
}

// A shell that is in the directory keeps the kernel from telling of its removal.
func TestPlansThatAShellIsIn(t *testing.T) {
	d := start(t, small)
	d.until("in force", has("small", reconcile.InForce))
	shell, err := os.Open(d.plans)
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	if err := os.RemoveAll(d.plans); err != nil {
		t.Fatal(err)
	}
	d.away("small")
	d.make(strings.Replace(small, "plan: small", "plan: large", 1))
	d.until("large", func(s Status) bool { return has("large", reconcile.InForce)(s) && s.PlansError == "" })
}

// A host that never had plans has none, which is no error.
func TestNoPlansYet(t *testing.T) {
	d := prepareAt(t, "", "")
	d.start()
	if err := d.Reload(); err != nil || d.Status().PlansError != "" {
		t.Errorf("%v, %+v", err, d.Status())
	}
	d.make(small)
	if err := d.Reload(); err != nil {
		t.Fatal(err)
	}
	d.until("in force", has("small", reconcile.InForce))
	if d.says("plans not loaded") {
		t.Error(d.told())
	}
}
