package prove_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// inGroup runs a command under weir run and returns its group as a target, and how many
// processes are in it.
func inGroup(t *testing.T, dir, name string, limits []string, command ...string) (target string, processes func() int) {
	t.Helper()
	args := append([]string{"run", "--quiet", "--hold", "kernel", "--name", name, "--on", dir}, limits...)
	cmd := exec.Command("weir", append(append(args, "--"), command...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	type group struct {
		Target    string
		Processes int
	}
	find := func() (found group) {
		out, err := exec.Command("weir", "show", "--json", "--for", "0").Output()
		var doc struct{ Groups []group }
		if err != nil || json.Unmarshal(out, &doc) != nil {
			t.Fatalf("weir show: %v: %s", err, out)
		}
		for _, g := range doc.Groups {
			if strings.HasSuffix(g.Target, "weir-"+name) {
				found = g
			}
		}
		return found
	}
	lab.Await(t, 10*time.Second, "the group of weir run", func() bool { return find().Processes > 0 })
	return find().Target, func() int { return find().Processes }
}

// Loads run inside the target's group, under its limits, on the device of its mounts. They
// leave neither a process nor a file there.
func TestProveTarget(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.FS("ext4"), lab.NoSystemd)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	target, processes := inGroup(t, disk.Dir, "prove-target", []string{"--write", "3MiB/s"}, "sleep", "600")
	doc, rows, _ := prove(t, target, "--on", disk.Dir, "--paths", "direct,buffered", "--for", "1500ms")
	if doc.Target == nil || *doc.Target != target {
		t.Errorf("target %v, want %s", doc.Target, target)
	}
	want(t, rows, "direct write", "held")
	if e.Cgroups.Blkio != "" {
		want(t, rows, "buffered write", "not held")
	} else {
		want(t, rows, "buffered write", "held at the device")
	}
	if n := processes(); n != 1 {
		t.Errorf("%d processes in the group, want the one that was there", n)
	}
	if names, err := filepath.Glob(disk.Dir + "/*"); err != nil || len(names) != 1 { // lost+found
		t.Errorf("files %v, %v", names, err)
	}
}

// --observe judges what a target does itself, and cannot tell if the target hardly does any
// I/O.
func TestProveObserves(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.FS("ext4"), lab.NoSystemd)
	t.Parallel()
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		disk := lab.Disk(t, lab.FS("ext4"))
		idle, _ := inGroup(t, disk.Dir, "prove-idle", []string{"--write", "1MiB/s"}, "sleep", "600")
		var doc document
		code := lab.ProveOnce(t, &doc, idle, "--observe", "1s") // no second time tells more
		rows := doc.byName(t)
		if r := want(t, rows, "its own writes", "cannot tell"); code != 3 || r.Reason != "slow" {
			t.Errorf("exit %d, %+v", code, r)
		}
	})
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		disk := lab.Disk(t, lab.FS("ext4"))
		busy, _ := inGroup(t, disk.Dir, "prove-busy", []string{"--write", "1MiB/s"},
			"dd", "if=/dev/zero", "of="+disk.Dir+"/f", "bs=16384", "oflag=direct")
		time.Sleep(time.Second) // the throttle's first slices
		_, rows, code := prove(t, busy, "--observe", "2s")
		if want(t, rows, "its own writes", "held"); code != 0 {
			t.Errorf("exit %d, want 0", code)
		}
	})
	t.Run("slack", func(t *testing.T) {
		t.Parallel()
		disk := lab.Disk(t, lab.FS("ext4"))
		job := load.Job{Path: load.Direct, File: disk.Dir + "/g", Block: 16 << 10, Size: 1 << 20, Pace: 570_000, For: time.Hour}
		slack, _ := inGroup(t, disk.Dir, "prove-slack", []string{"--write", "1MiB/s"}, append([]string{"weir", "__load"}, job.Args()...)...)
		time.Sleep(time.Second)
		observe := []string{slack, "--observe", "2s"}
		var doc document
		code := lab.ProveOnce(t, &doc, observe...)
		rows := doc.byName(t)
		if rows["its own writes"].Reason == "busy" { // too slow is what it is to say
			_, rows, code = prove(t, observe...)
		}
		if r := want(t, rows, "its own writes", "cannot tell"); code != 3 || r.Reason != "slow" {
			t.Errorf("exit %d, %+v; half of the limit is no saturation", code, r)
		}
	})
}

// If a target ends while weir watches it, weir says so.
func TestProveObservesTheEnd(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.FS("ext4"), lab.NoSystemd)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	ended := filepath.Join(t.TempDir(), "ended")
	short, _ := inGroup(t, disk.Dir, "prove-short", []string{"--write", "1MiB/s"}, "sh", "-c", "until test -e "+ended+"; do sleep 0.1; done")
	end := time.AfterFunc(3*time.Second, func() { _ = os.WriteFile(ended, nil, 0o600) })
	defer end.Stop()
	_, rows, code := prove(t, short, "--observe", "6s")
	if r := want(t, rows, "its own writes", "cannot tell"); code != 3 || r.Reason != "disturbed" {
		t.Errorf("exit %d, %+v", code, r)
	}
}

// Operations are counted as the kernel counts them, and a limit holds 32 requests at once as
// well as one.
func TestProveOperationsAndDepth(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV1, lab.Rates, lab.FS("ext4"), lab.NoSystemd)
	t.Parallel()
	t.Run("operations", func(t *testing.T) {
		t.Parallel()
		_, rows, _ := prove(t, "--write-iops", "200", "--read-iops", "200", "--paths", "direct", "--for", "2s", "--on", lab.Disk(t, lab.FS("ext4")).Dir)
		want(t, rows, "random direct write", "held")
		want(t, rows, "random direct read", "held")
	})
	t.Run("depth", func(t *testing.T) {
		t.Parallel()
		_, rows, _ := prove(t, "--write", "4MiB/s", "--read", "4MiB/s", "--paths", "async", "--for", "2s", "--on", lab.Disk(t, lab.FS("ext4")).Dir)
		want(t, rows, "async write ×32", "held")
		want(t, rows, "async read ×32", "held")
	})
}

// A limit holds 32 requests at once through an overlay as on the file system below it.
// (Kernels from 4.19 to 5.5 serve them one by one; no guest has such a kernel.)
func TestProveOverlay(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.Overlay, lab.FS("ext4"), lab.NoSystemd)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	for _, name := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(disk.Dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(disk.Dir, "merged")
	if err := unix.Mount("overlay", merged, "overlay", 0, strings.ReplaceAll("lowerdir=D/lower,upperdir=D/upper,workdir=D/work", "D", disk.Dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(merged, 0) })
	for _, dir := range []string{disk.Dir, merged} {
		_, rows, _ := prove(t, "--write", "4MiB/s", "--paths", "async", "--for", "2s", "--on", dir)
		want(t, rows, "async write ×32", "held")
	}
}

func TestProveUnlimitedTarget(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.NoSystemd)
	out, err := exec.Command("weir", "prove", "pid:1").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "limit") || strings.Count(string(out), "\n") != 1 {
		t.Errorf("%v: %s", err, out)
	}
}

// A limit on the hog gives the victim its disk back. (A hog takes the whole
// machine: one kernel will do, of v2 for writes and of v1 for reads.)
func TestProveNeighbour(t *testing.T) {
	t.Run("writes", func(t *testing.T) {
		lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.MinKernel(6, 12), lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"))
		neighbourOfWrites(t, lab.Disk(t, lab.FS("ext4")))
	})
	// On v1 a hog's reads are counted before they are let go, and the victim reads there too.
	t.Run("reads", func(t *testing.T) {
		lab.Need(t, lab.Root, lab.OnceV1, lab.Rates, lab.MinKernel(6, 12), lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"))
		_, rows, _ := prove(t, "--read", "3MiB/s", "--neighbour", "--for", "1s", "--dir", lab.Disk(t, lab.FS("ext4")).Dir)
		want(t, rows, "the limited process's reads", "held")
	})
}

func neighbourOfWrites(t *testing.T, disk *lab.TestDisk) {
	t.Helper()
	lab.Ratio(t, "reads beside the limited hog by those beside the free one", 1, lab.Band{Low: 1.5, High: math.Inf(1)}, func() float64 {
		doc, _, code := prove(t, "--write", "3MiB/s", "--neighbour", "--for", "1s", "--dir", disk.Dir)
		if len(doc.Neighbour) != 3 {
			t.Fatalf("%+v, want three phases", doc.Neighbour)
		}
		free, limited := doc.Neighbour[1], doc.Neighbour[2]
		t.Logf("%+v", doc.Neighbour)
		if code == 1 {
			t.Errorf("exit %d", code)
		}
		if free.Hog < 3*limited.Hog {
			t.Logf("the free hog does %.0f, the limited one %.0f bytes/s: too little to tell", free.Hog, limited.Hog)
			return 0
		}
		return limited.Reads / free.Reads
	})
}
