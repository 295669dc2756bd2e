package why_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// After weir set, the pacer holds writes to another group's file. weir why says so and by
// what, the disk does no more than the limit, and weir prove --observe agrees. With --hold
// kernel all three say that nothing holds such writes.
func TestWhyEscapesPaced(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g, first := newGroup(t, nil, "why-escapes", "io", "memory"), newGroup(t, nil, "why-escapes-first")
	target := "cgroup:" + g.path
	set := func(hold string) {
		tool(t, "weir", "set", target, "--write", "2MB/s", "--on", disk.Dir, "--hold", hold)
	}
	file := filepath.Join(disk.Dir, "f")
	made(t, first, file)
	explain(t, file, "--write", "2MB/s").want(t, "foreign-inode", "note")
	explain(t, file, "--write", "2MB/s", "--hold", "kernel").want(t, "foreign-inode", "breaks")

	set("auto")
	t.Cleanup(func() { tool(t, "weir", "clear", target) })
	explain(t, target, "--on", disk.Dir).want(t, "escapes-paced", "note")
	writer := start(t, g, "writeback", 600, file)
	t.Cleanup(func() {
		_ = writer.Process.Kill()
		_ = writer.Wait() // it was killed
	})
	lab.Await(t, 20*time.Second, "weir why to find the file", func() bool {
		return explain(t, target, "--on", disk.Dir).find("foreign-inode") != nil
	})
	r := explain(t, target, "--on", disk.Dir)
	f := r.want(t, "foreign-inode", "note")
	for _, path := range []string{"sync", "buffered", "mapped"} {
		if r.held(path, false) != "yes" || r.by(path) != "pacer" {
			t.Errorf("%s write: %q by %q, want by the pacer: %+v", path, r.held(path, false), r.by(path), f)
		}
	}
	if r.status != 0 {
		t.Errorf("weir why ends with %d though all is expected to hold: %v", r.status, r.codes())
	}
	lab.Ratio(t, "another's file, paced", 2e6, lab.Written, func() float64 { return reaches(t, disk, 5*time.Second) })
	if verdict, codes := observed(t, target); verdict != "held" && verdict != "held at the device" || !slices.Contains(codes, "foreign-inode") {
		t.Errorf("weir prove --observe says %q, because of %q", verdict, codes)
	}

	set("kernel")
	r = explain(t, target, "--on", disk.Dir)
	r.want(t, "foreign-inode", "breaks")
	lab.Ratio(t, "another's file, let go", 2e6, lab.Band{Low: 1.5, High: 1e9}, func() float64 { return reaches(t, disk, 2*time.Second) })
	if verdict, codes := observed(t, target); verdict != "not held" || !slices.Contains(codes, "foreign-inode") {
		t.Errorf("weir prove --observe says %q, because of %q", verdict, codes)
	}
}

// by is what holds one path of writing at the first place.
func (r report) by(path string) string {
	for _, c := range r.Matrix {
		if c.Place == 0 && c.Path == path && !c.Read {
			return c.Mechanism
		}
	}
	return ""
}

// observed is what weir prove says of what a target does itself, and of the codes of weir why.
func observed(t *testing.T, target string) (verdict string, codes []string) {
	t.Helper()
	var doc struct {
		Rows     []struct{ Verdict string }
		Findings []struct{ Code string }
	}
	lab.Prove(t, &doc, target, "--observe", "5s")
	if len(doc.Rows) == 0 {
		t.Fatal("weir prove --observe has no rows")
	}
	t.Logf("%+v", doc)
	for _, f := range doc.Findings {
		codes = append(codes, f.Code)
	}
	return doc.Rows[0].Verdict, codes
}
