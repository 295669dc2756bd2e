package latency_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// roomy lets a small guest have as much dirty as a large host: its own thresholds would
// throttle a writer of a quarter of its memory. On v2 they are a group's too, as shares of
// its memory: with 0.8 of it a writer of 40 MiB was throttled for 1.9 s in some runs
// on 7.3, as nobody writes back for a group below them until it reclaims.
func roomy(t *testing.T) {
	set(t, map[string]string{"dirty_bytes": "4000000000", "dirty_background_bytes": "800000000"})
}

// slower is by how much a writer is slower with little memory for its page cache, in the mean
// or at p99.
func slower(c copied) float64 {
	free, bound := c.Runs[0], c.Runs[1]
	return max(bound.Mean/free.Mean, bound.P99/free.P99)
}

// reclaims checks why: it frees what it has written before; without a limit it frees
// nothing.
func reclaims(t *testing.T, c copied) {
	t.Helper()
	free, bound := c.Runs[0], c.Runs[1]
	if wait := bound.wait(); wait != "memcg_reclaim" || bound.Trace.Reclaim.Calls == 0 || bound.share(wait) < 0.02 {
		lab.Measures(t) // a flusher that gets no processor lets the group come near its dirty threshold
		t.Errorf("with the limit most waits are %s, %.3f of the time, after %d reclaims", wait, bound.share(wait), bound.Trace.Reclaim.Calls)
	}
	if free.Trace.Reclaim.Calls != 0 || free.share("memcg_reclaim") != 0 {
		t.Errorf("memcg reclaim is %.3f of the time without a limit, after %d reclaims", free.share("memcg_reclaim"), free.Trace.Reclaim.Calls)
	}
}

// drawn checks that a picture is there, and says some words.
func drawn(t *testing.T, svg string, want ...string) {
	t.Helper()
	f, err := os.Open(svg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text strings.Builder
	for d := xml.NewDecoder(f); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", svg, err)
		}
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
		}
	}
	for _, w := range want {
		if !strings.Contains(text.String(), w) {
			t.Errorf("the picture does not say %q: %s", w, &text)
		}
	}
}

func nothingIsLeft(t *testing.T, dir string) {
	t.Helper()
	if groups := lab.WeirGroups(t); len(groups) > 0 {
		t.Errorf("groups %v are left", groups)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "lost+found" {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// warm writes and removes what a run without a limit will take: memory that a guest has
// never used comes from its host page by page, which costs more than what is measured.
func warm(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "warm")
	if out, err := exec.Command("dd", "if=/dev/zero", "of="+file, "bs=1M", "count=500", "status=none").CombinedOutput(); err != nil {
		t.Fatalf("dd: %v\n%s", err, out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// The latency curves, where nothing else uses the processor. They are drawn without a trace
// too, and then weir says what is missing.
func TestMemoryLimitSlowsWrites(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.Rates, lab.NoSystemd, lab.Memory, lab.FS("ext4"))
	roomy(t)
	disk := lab.Disk(t, lab.FS("ext4"))
	warm(t, disk.Dir)
	svg := filepath.Join(t.TempDir(), "latency.svg")
	var c copied
	lab.Ratio(t, "a write with little memory by one without a limit", 1, lab.Band{Low: 1.2, High: math.Inf(1)}, func() float64 {
		c = latency(t, disk.Dir, "--size", "512MiB", "--memory", "40MiB", "--svg", svg)
		return slower(c)
	})
	if !strings.Contains(strings.Join(c.Words, "\n"), "to end this") {
		t.Errorf("nothing is advised: %q", c.Words)
	}
	drawn(t, svg, "p99 of a write", "no memory limit", "memory 40 MiB")
	if why := c.Runs[0].Untraced; !e.Has(string(lab.BPF)) && !strings.Contains(why, "the kernel has no type information") {
		t.Errorf("untraced: %q", why)
	}
	nothingIsLeft(t, disk.Dir)
}

// The report names reclaim as the reason that the writes are slow.
func TestReclaimIsNamed(t *testing.T) {
	lab.Need(t, lab.Root, lab.BPF, lab.NoSystemd, lab.Memory, lab.FS("ext4"))
	roomy(t)
	disk := lab.Disk(t, lab.FS("ext4"))
	svg := filepath.Join(t.TempDir(), "latency.svg")
	reclaims(t, traced(t, disk.Dir, "--size", "96MiB", "--memory", "40MiB", "--svg", svg))
	drawn(t, svg, "memory 40 MiB: where the time of writes went", "memcg reclaim")
	nothingIsLeft(t, disk.Dir)
}

// A common story from start to end. Writes are slow under a memory limit; are dirty pages
// the cause? No: they stay below the threshold, and with tiny thresholds the waits have
// another cause and are longer. Direct I/O has neither.
func TestStoryOfSlowWrites(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Root, lab.BPF, lab.NoSystemd, lab.Memory, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	t.Run("slow", func(t *testing.T) {
		roomy(t)
		svg := filepath.Join(t.TempDir(), "story.svg")
		c := traced(t, disk.Dir, "--size", "256MiB", "--memory", "64MiB", "--direct", "--svg", svg)
		reclaims(t, c) // how much slower that makes them, an emulated guest does not tell
		if direct := c.Runs[2]; direct.Trace.Reclaim.Calls > 0 || direct.share("memcg_reclaim") > 0.01 {
			t.Errorf("direct writes reclaim: %.3f of the time", direct.share("memcg_reclaim"))
		}
		drawn(t, svg, "direct, memory 64 MiB: where the time of writes went")
	})
	t.Run("dirty", func(t *testing.T) {
		roomy(t)
		watchDirty(t, disk, 64<<20, func(d watched) {
			if d.Host.Throttled != 0 || d.Host.Peak.Dirty == 0 {
				t.Errorf("a writer of 64 MiB was throttled: %+v", d)
			}
		})
	})
	t.Run("tiny", func(t *testing.T) {
		set(t, map[string]string{"dirty_background_bytes": "4096", "dirty_bytes": "8192"})
		c := traced(t, disk.Dir, "--size", "8MiB", "--direct")
		if r := c.Runs[0]; r.wait() != "dirty_throttling" || r.share("dirty_throttling") < 0.3 {
			t.Errorf("buffered: most waits are %s; dirty throttling is %.3f of the time", r.wait(), r.share("dirty_throttling"))
		}
		if direct := c.Runs[2]; direct.share("dirty_throttling") != 0 {
			t.Errorf("direct: dirty throttling is %.3f of the time", direct.share("dirty_throttling"))
		}
		watchDirty(t, disk, 8<<20, func(d watched) {
			if d.Host.Throttled == 0 || d.Host.Share < 0.5 {
				t.Errorf("a writer far beyond the thresholds was not throttled: %+v", d)
			}
		})
	})
	nothingIsLeft(t, disk.Dir)
}

// watched is what weir trace --dirty --json says.
type watched struct {
	Host struct {
		Peak struct {
			Dirty int64 `json:"dirty_bytes"`
		}
		Share     float64 `json:"share_of_limit"`
		Throttled int     `json:"throttled_readings"`
	}
	Words []string
}

// watchDirty looks at dirty pages while a program writes so many bytes.
func watchDirty(t *testing.T, disk *lab.TestDisk, bytes int, check func(watched)) {
	t.Helper()
	file := filepath.Join(disk.Dir, "written")
	dd := exec.Command("dd", "if=/dev/zero", "of="+file, "bs=64k", fmt.Sprintf("count=%d", bytes>>16), "status=none")
	if err := dd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(file) }()
	defer func() { _ = dd.Wait() }() // it is killed, or has ended
	defer func() { _ = dd.Process.Kill() }()
	lab.Await(t, 20*time.Second, "the writer's first bytes", func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 0
	})
	var d watched
	trace(t, &d, "--dirty", fmt.Sprintf("pid:%d", os.Getpid()), "--for", "3s")
	t.Logf("%s", strings.Join(d.Words, "\n"))
	check(d)
}
