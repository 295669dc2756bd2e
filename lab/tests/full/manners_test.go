package full

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/lab"
)

// again writes a file, removes it and begins anew: what it does is seen by the file's time and size.
const again = "while :; do /bin/busybox dd if=/dev/zero of=/data/f bs=65536 count=160 2>/dev/null; /bin/busybox rm /data/f; done"

// While weir's pacer holds a container, whom its engine puts into it is held with the others, and starts and
// ends there; and the engine's pause is the engine's.
func (d containerTest) manners(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Systemd)
	t.Run("newcomer", d.newcomer)
	d.container(t, "busy", nil, "/bin/sh", "-c", again)
	freezer, limited := d.freezer(t, "busy"), d.limited(t, "busy") // before weir has moved its process
	mustWeir(t, "set", d.engine+":busy", "--quiet", "--write", "1MB/s", "--on", d.disk.Dir, "--hold", "pacer")
	t.Run("execs", d.execs)
	t.Run("pauses", func(t *testing.T) { d.pauses(t, freezer, limited) })
	mustWeir(t, "clear", d.engine+":busy", "--quiet")
	lab.Await(t, 20*time.Second, "weir's groups to be gone", func() bool {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(freezer), "weir-pace-*"))
		return err == nil && len(found) == 0
	})
}

// newcomer: a process that the engine starts in a container that does nothing is held from its first byte on.
func (d containerTest) newcomer(t *testing.T) {
	lab.Need(t, lab.Rates)
	const rate, seconds, more = 10_000_000, 5, 2
	d.container(t, "idle", nil, "/bin/sleep", "600")
	mustWeir(t, "set", d.engine+":idle", "--quiet", "--write", fmt.Sprint(rate), "--on", d.disk.Dir, "--hold", "pacer")
	file := filepath.Join(d.disk.Dir, "f")
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	var second float64
	lab.Ratio(t, "the newcomer", rate, lab.Band{Low: lab.Written.Low, High: 1.1}, func() float64 {
		const pieces = rate * (seconds + more) / 65536
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		run(t, d.engine, "exec", "--detach", "idle", "/bin/busybox", "dd", "if=/dev/zero", "of=/data/f", "bs=65536", fmt.Sprint("count=", pieces))
		lab.Await(t, 20*time.Second, "its first write", func() bool { return size() > 0 })
		began := time.Now()
		time.Sleep(time.Second)
		second = float64(size()) / rate / time.Since(began).Seconds()
		time.Sleep((seconds - 1) * time.Second)
		got := float64(size()) / time.Since(began).Seconds()
		time.Sleep(2 * more * time.Second) // it ends by itself
		return got
	})
	t.Logf("in its first second: %.2f", second)
	if second > 1.3 {
		t.Errorf("in its first second it wrote %.2f of the limit", second)
	}
	mustWeir(t, "clear", d.engine+":idle", "--quiet")
}

// execs: processes start and end in a container that is paused nearly all the time.
func (d containerTest) execs(t *testing.T) {
	const atOnce = 4
	execs := int64(lab.Times(t, "WEIR_EXECS", 3))
	var failed, next atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range atOnce {
		all.Go(func() {
			for next.Add(1) <= execs {
				if out, err := exec.CommandContext(t.Context(), d.engine, "exec", "busy", "/bin/echo", "here").CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "here" {
					failed.Add(1)
					t.Errorf("%s exec: %v: %s", d.engine, err, out)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d started by %s exec and ended, in %s", execs-failed.Load(), execs, d.engine, time.Since(began).Round(time.Millisecond))
}

// pauses: the engine's pause is never undone. After it the container goes on once it has paid for what it
// had written before.
func (d containerTest) pauses(t *testing.T, freezer string, limited pacer.Place) {
	w := lab.PacedWriter{Limited: limited, Frozen: filepath.Dir(freezer), Mark: func() string {
		info, err := os.Stat(filepath.Join(d.disk.Dir, "f"))
		if err != nil {
			return "none"
		}
		return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
	}}
	asked := func() bool {
		text, err := os.ReadFile(freezer)
		return err == nil && strings.TrimSpace(string(text)) == "1"
	}
	pauses := lab.Times(t, "WEIR_PAUSES", 2)
	began := time.Now()
	var before, after, first []time.Duration // what it owes, and when it writes
	for i := range pauses {
		run(t, d.engine, "pause", "busy")
		time.Sleep(50 * time.Millisecond) // a write that is under way ends
		was := w.Mark()
		before = append(before, w.Owes(t))
		time.Sleep(100 * time.Millisecond)
		if now := w.Mark(); now != was || !asked() {
			t.Fatalf("pause %d: it wrote (%s, before %s); paused still: %t", i, now, was, asked())
		}
		run(t, d.engine, "unpause", "busy")
		resumed := time.Now()
		w.AwaitWrite(t, 5*time.Second, was)
		first = append(first, time.Since(resumed).Round(time.Millisecond))
		if asked() {
			t.Fatalf("pause %d: it is paused afterwards", i)
		}
		after = append(after, w.Owes(t).Round(time.Millisecond))
	}
	most := []time.Duration{slices.Max(before), slices.Max(first), slices.Max(after)}
	t.Logf("%d pauses by %s, none undone, none left, in %s; it owed %s at most in a pause, wrote after %s, and then owed %s", pauses, d.engine, time.Since(began).Round(time.Millisecond), most[0], most[1], most[2])
}

// limited is a container's group, as the pacer names it.
func (d containerTest) limited(t *testing.T, name string) pacer.Place {
	t.Helper()
	root, controller := d.e.Cgroups.Unified, ""
	if d.e.Cgroups.Blkio != "" {
		root, controller = d.e.Cgroups.Blkio, "blkio"
	}
	return pacer.Place{Controller: controller, Path: strings.TrimPrefix(d.group(t, name), root)}
}

// freezer is the file that says whether the owner of a container's group has paused it.
func (d containerTest) freezer(t *testing.T, name string) string {
	t.Helper()
	if d.e.Cgroups.Blkio == "" {
		return filepath.Join(d.group(t, name), "cgroup.freeze")
	}
	text, err := os.ReadFile("/proc/" + run(t, d.engine, "inspect", "--format", "{{.State.Pid}}", name) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(d.e.Cgroups.Mounted1, func(dir string) bool { return filepath.Base(dir) == "freezer" })
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); at >= 0 && fields[1] == "freezer" {
			return filepath.Join(d.e.Cgroups.Mounted1[at], fields[2], "freezer.self_freezing")
		}
	}
	t.Fatalf("no freezer of %s: %s", name, text)
	return ""
}
