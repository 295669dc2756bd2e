package prove_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// limit is all that an emulated processor can do through the page cache.
const limitBytes = 3 << 20

type seen struct{ Rate, Low, High float64 }

type row struct {
	Name, Path, Direction, Unit string
	Limit, Operations           float64
	Writer, Cgroup, Disk        seen
	Ratio                       float64
	Verdict, Reason, Why        string
	Warnings                    []string
	Dirty                       float64 `json:"dirty_bytes"`
	Drain                       float64 `json:"drain_seconds"`
}

type document struct {
	Schema, Verdict string
	Target          *string
	Rows            []row
	Findings        []struct{ Code string }
	Neighbour       []struct {
		Name  string
		Reads float64 `json:"reads_per_second"`
		Hog   float64
	}
}

func (d document) codes() (codes []string) {
	for _, f := range d.Findings {
		codes = append(codes, f.Code)
	}
	return codes
}

// prove runs weir prove, again where the machine was too busy, and returns its document,
// rows by name, and its exit code.
func prove(t *testing.T, args ...string) (doc document, rows map[string]row, code int) {
	t.Helper()
	code = lab.Prove(t, &doc, args...)
	return doc, doc.byName(t), code
}

// byName finds and tells the rows.
func (d document) byName(t *testing.T) map[string]row {
	t.Helper()
	rows := map[string]row{}
	for _, r := range d.Rows {
		rows[r.Name] = r
		t.Logf("%s: %s (%s%s) %.2f; writer %.0f cgroup %.0f device %.0f %s; n %.0f; dirty %.0f", r.Name, r.Verdict, r.Reason, r.Why, r.Ratio, r.Writer.Rate, r.Cgroup.Rate, r.Disk.Rate, r.Unit, r.Operations, r.Dirty)
	}
	return rows
}

// want fails the test unless a row has one of the verdicts.
func want(t *testing.T, rows map[string]row, name string, verdicts ...string) row {
	t.Helper()
	r, there := rows[name]
	if !there {
		t.Fatalf("no row %q", name)
	}
	for _, v := range verdicts {
		if r.Verdict == v {
			return r
		}
	}
	t.Errorf("%s: %s (%s: %s), want %s", name, r.Verdict, r.Reason, r.Why, strings.Join(verdicts, " or "))
	return r
}

// weir prove says what is held and what is not on the scratch disk: cold reads always,
// buffered writes on v2 at the device. (lab/tests/agree measures the other paths and file
// systems.) A slow machine never makes it say not held.
func TestProve(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"))
	if e.Lane != "qemu" && !e.Has(string(lab.Systemd)) {
		lab.Need(t, lab.Long)
	}
	t.Parallel()
	slow := []string{}
	if e.Lane == "qemu" {
		slow = []string{"cannot tell"}
	}
	if e.Cgroups.Blkio != "" {
		t.Run("what weir run would do", func(t *testing.T) {
			t.Parallel()
			_, rows, code := prove(t, "--write", "3MiB/s", "--paths", "buffered", "--for", "2s", "--dir", lab.Disk(t, lab.FS("ext4")).Dir)
			if want(t, rows, "buffered write", append(slow, "held")...); code == 1 {
				t.Errorf("exit %d, with the pacer", code)
			}
		})
	}
	t.Run("what the kernel does", func(t *testing.T) {
		t.Parallel()
		proveKernel(t, e, slow)
	})
}

// proveKernel proves a limit that the kernel alone holds, or does not.
func proveKernel(t *testing.T, e environ.Environ, slow []string) {
	t.Helper()
	args := []string{"--write", "3MiB/s", "--paths", "buffered", "--for", "2s", "--dir", lab.Disk(t, lab.FS("ext4")).Dir}
	if e.Lane != "qemu" && !testing.Short() {
		args = append(args, "--read", "3MiB/s")
	}
	if e.Cgroups.Blkio != "" {
		args = append(args, "--hold", "kernel")
	}
	doc, rows, code := prove(t, args...)
	if doc.Schema != "weir.prove/1" || doc.Target != nil || len(rows) == 0 {
		t.Errorf("document: %+v", doc)
	}
	if e.Lane != "qemu" && !testing.Short() {
		want(t, rows, "buffered read", "held", "held at the device")
	}
	if e.Cgroups.Blkio != "" {
		r := want(t, rows, "buffered write", "not held")
		if code != 1 || doc.Verdict != "not held" || r.Disk.Rate < 3*limitBytes || r.Cgroup.Rate > limitBytes/2 || !slices.Contains(doc.codes(), "v1-writeback") {
			t.Errorf("exit %d, %s; buffered writes on v1: %+v", code, doc.Verdict, r)
		}
		return
	}
	r := want(t, rows, "buffered write", append(slow, "held at the device")...)
	if r.Verdict == "held at the device" && (r.Writer.Rate < 2*limitBytes || r.Dirty < limitBytes || r.Drain < 0.5) {
		t.Errorf("buffered writes on v2: %+v; want the writer ahead, and by how much", r)
	}
	if code == 1 {
		t.Errorf("exit %d, want 0, or 3 on a slow machine", code)
	}
}

// Without flags weir prove takes less than half a minute.
func TestProveTakesHalfAMinute(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Root, lab.Lane("native"), lab.Loop, lab.Command("mkfs.ext4"))
	began := time.Now()
	var doc document
	lab.ProveOnce(t, &doc, "--write", "10MB/s", "--read", "10MB/s")
	if took := time.Since(began); took > 30*time.Second || len(doc.Rows) != 6 {
		t.Errorf("%d rows in %.1f s", len(doc.Rows), took.Seconds())
	}
}
