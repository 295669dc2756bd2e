package latency_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// roomy lets a small guest have as much dirty as a large host: its own thresholds would
// throttle a writer of a quarter of its memory.
func roomy(t *testing.T) {
	set(t, map[string]string{"dirty_bytes": "700000000", "dirty_background_bytes": "600000000"})
}

// slowed checks the documents' finding: with little memory for its page cache a writer is
// slower, because it frees what it has written before; without a limit it frees nothing.
func slowed(t *testing.T, c copied) {
	t.Helper()
	free, bound := c.Runs[0], c.Runs[1]
	if bound.Mean < 1.2*free.Mean && bound.P99 < 1.2*free.P99 {
		t.Errorf("with the limit mean %.0f, p99 %.0f µs; without it %.0f, %.0f", bound.Mean, bound.P99, free.Mean, free.P99)
	}
	if bound.Trace.Reclaim.Calls == 0 || bound.share("memcg_reclaim") < 0.05 {
		t.Errorf("memcg reclaim is %.3f of the time with the limit (%+v)", bound.share("memcg_reclaim"), bound.Trace.Reclaim)
	}
	if free.Trace.Reclaim.Calls != 0 || free.share("memcg_reclaim") != 0 {
		t.Errorf("memcg reclaim is %.3f of the time without a limit (%+v)", free.share("memcg_reclaim"), free.Trace.Reclaim)
	}
	if !strings.Contains(strings.Join(c.Words, "\n"), "would end this") {
		t.Errorf("nothing is advised: %q", c.Words)
	}
}

// A picture is drawn beside the figures.
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

// The experiment in short.
func TestMemoryLimitSlowsWrites(t *testing.T) {
	lab.Need(t, lab.Root, lab.BPF, lab.NoSystemd, lab.Memory, lab.FS("ext4"))
	roomy(t)
	disk := lab.Disk(t, lab.FS("ext4"))
	svg := filepath.Join(t.TempDir(), "latency.svg")
	slowed(t, latency(t, disk.Dir, "--size", "128MiB", "--memory", "40MiB", "--svg", svg))
	drawn(t, svg, "no memory limit", "memory 40 MiB: where the time of writes went", "memcg reclaim")
	nothingIsLeft(t, disk.Dir)
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
