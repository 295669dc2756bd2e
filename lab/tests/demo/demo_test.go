// Package demo_test runs weir demo, the README's first command, and interrupts it.
package demo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

type row struct {
	Path   string  `json:"path"`
	Limit  any     `json:"limit"`
	Hold   string  `json:"hold"`
	Writer float64 `json:"writer_bytes_sec"`
	Device float64 `json:"device_bytes_sec"`
	Held   bool    `json:"held"`
	Slow   bool    `json:"cannot_tell"`
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
		if r.Hold == "pacer" {
			r.Path += " paced"
		}
		rows[r.Path] = r
	}
	if len(rows) != len(doc.Rows) || len(rows) < 4 {
		t.Fatalf("weir demo printed %s, want four rows or five", out)
	}
	return rows
}

// What the disk may do in the demo's limited rows, in bytes per second of its window:
// the limit for the window and one slice of the throttle more (0.1 s, blk-throttle's
// longest; it opens with a slice's worth), and one request, which is let through whole
// when its slice has anything left (2 MiB, the largest that ext4's writeback makes).
// Too much is never the machine's fault. Too little can be, because the demo's own free
// writers take all of a small guest's processor: half of the limit is what the demo asks
// for itself. How exact a limit is, the limits tests measure.
const (
	rate     = 10e6
	window   = 2.0 // seconds
	overMax  = (rate*(window+0.1) + 2<<20) / window
	underMin = 0.5 * rate
)

// Direct writes are held on v1 and v2, buffered ones on v2; where they are not, the
// demo says why, and its fifth row has the pacer hold them.
func TestDemo(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"))
	if e.Cgroups.Blkio != "" {
		lab.Need(t, lab.Whole) // the others run it there
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	lab.Ratio(t, "what the demo shows", 1, lab.Band{Low: 1, High: 1}, func() float64 {
		rows := demo(t, "--for", fmt.Sprintf("%gs", window), "--write", fmt.Sprint(int(rate)), "--dir", disk.Dir)
		t.Logf("%+v", rows)
		return shows(t, rows, e.Cgroups.Blkio != "")
	})
}

// shows judges a demo: 1 if it shows what it is to show, 2 if a limit let too much through,
// and 0 if something did too little, as on a busy machine.
func shows(t *testing.T, rows map[string]row, v1 bool) (judged float64) {
	t.Helper()
	judged = 1
	held := []string{"direct", "buffered"}
	if v1 {
		held = []string{"direct", "buffered paced"} // as weir run holds them
		switch b := rows["buffered"]; {
		case b.Slow || b.Device < overMax:
			t.Logf("buffered on v1: %+v, too little to tell", b)
			judged = 0
		case b.Held || !strings.Contains(b.Why, "v1"):
			t.Errorf("buffered on v1: %+v, want it not held, and why", b)
		}
	}
	for _, path := range held {
		r, free := rows[path], rows[strings.TrimSuffix(path, " paced")+" free"].Device
		switch {
		case r.Device > overMax:
			t.Logf("%s: %+v, want it held at 10 MB/s", path, r)
			return 2
		case !r.Held && !r.Slow && r.Device >= underMin:
			t.Errorf("%s: %+v, want it held at 10 MB/s", path, r)
		case r.Slow || r.Device < underMin:
			t.Logf("%s: %+v, want it held at 10 MB/s", path, r)
			judged = 0
		case free < 2*overMax:
			t.Logf("%s without a limit: the disk did %.0f bytes/s, too little to tell", path, free)
			judged = 0
		}
	}
	return judged
}

// start starts a demo in a process group of its own and waits for its first group.
func start(t *testing.T, command ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the demo's group", func() bool { return len(lab.WeirGroups(t)) > 0 })
	return cmd
}

// endsWith signals weir, which has to end with a shell's status at once, and with
// nothing left.
func endsWith(t *testing.T, cmd *exec.Cmd, s syscall.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(s) {
		t.Errorf("after %v weir demo ended with %v, want status %d", s, err, 128+int(s))
	}
	if left := lab.WeirGroups(t); len(left) > 0 {
		t.Errorf("groups %v are left", left)
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), "weir/scratch") {
		t.Errorf("the scratch disk is still mounted (%v)", err)
	}
}

// A signal ends the demo with a shell's status, and nothing is left, at once.
func TestInterruptedDemoLeavesNothing(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Loop, lab.NoSystemd, lab.Command("mkfs.ext4"), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4")) // that it can be unmounted shows that the demo's file is gone
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
		endsWith(t, start(t, "weir", "demo", "--quiet", "--for", "3s", "--dir", disk.Dir), s)
	}
}

// nohup weir demo lives on when the terminal hangs up.
func TestDemoIgnoresWhatItWasToldTo(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Loop, lab.NoSystemd, lab.Command("mkfs.ext4"), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	cmd := start(t, "sh", "-c", `trap "" HUP; exec weir demo --quiet --for 1s --dir "$0"`, disk.Dir)
	first := lab.WeirGroups(t)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the demo's next group", func() bool {
		now := lab.WeirGroups(t)
		return len(now) > 0 && !slices.Equal(now, first)
	})
	endsWith(t, cmd, unix.SIGINT)
}
