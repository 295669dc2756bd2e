// Package demo_test runs weir demo, the README's first command, and interrupts it.
package demo_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

type row struct {
	Path   string  `json:"path"`
	Limit  any     `json:"limit"`
	Writer float64 `json:"writer_bytes_sec"`
	Device float64 `json:"device_bytes_sec"`
	Held   bool    `json:"held"`
	Why    string  `json:"why"`
}

func demo(t *testing.T, args ...string) map[string]row {
	t.Helper()
	out, err := exec.Command("weir", append([]string{"demo", "--json", "--quiet"}, args...)...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("weir demo: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var doc struct{ Rows []row }
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	rows := map[string]row{}
	for _, r := range doc.Rows {
		if r.Limit == "max" {
			r.Path += " free"
		}
		rows[r.Path] = r
	}
	if len(rows) != 4 {
		t.Fatalf("weir demo printed %s, want four rows", out)
	}
	return rows
}

// overMax and underMin bound what the disk may do in the demo's limited rows: two
// seconds at 10 MB/s, a slice and a large request. Too much is never the machine's
// fault; too little can be, because the demo's own free writers take all of a small
// guest's processor. How exact a limit is, the limits tests measure.
const (
	overMax  = 1.2 * 10e6
	underMin = 0.5 * 10e6
)

// Direct writes are held on v1 and v2, buffered ones on v2; where they are not, the
// demo says why.
func TestDemo(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"))
	rows := demo(t, "--for", "2s", "--write", "10MB/s", "--dir", lab.Disk(t, lab.FS("ext4")).Dir)
	t.Logf("%+v", rows)
	held := []string{"direct", "buffered"}
	if e.Cgroups.Blkio != "" {
		held = held[:1]
		if b := rows["buffered"]; b.Held || b.Device < overMax || !strings.Contains(b.Why, "v1") {
			t.Errorf("buffered on v1: %+v, want it not held, and why", b)
		}
	}
	for _, path := range held {
		if r := rows[path]; !r.Held || r.Device > overMax || r.Device < underMin {
			t.Errorf("%s: %+v, want it held at 10 MB/s", path, r)
		}
		if free := rows[path+" free"].Device; free < 2*overMax {
			t.Errorf("%s without a limit: the disk did %.0f bytes/s, too little to tell", path, free)
		}
	}
}

// Ctrl-C ends the demo with a shell's status, and nothing is left, at once.
func TestInterruptedDemoLeavesNothing(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.Loop, lab.NoSystemd, lab.Command("mkfs.ext4"), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4")) // that it can be unmounted shows that the demo's file is gone
	cmd := exec.Command("weir", "demo", "--quiet", "--for", "3s", "--dir", disk.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the demo's group", func() bool { return len(lab.WeirGroups(t)) > 0 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("weir demo ended with %v, want status 130", err)
	}
	if left := lab.WeirGroups(t); len(left) > 0 {
		t.Errorf("groups %v are left", left)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), "weir/scratch") {
		t.Errorf("the scratch disk is still mounted (%v)", err)
	}
}
