package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// A buffered writer, a direct one and a direct reader in one group are held each by what is
// for it: the pacer, and the kernel's rules. The direct ones get less while they are stopped
// for what the buffered one does.
func TestAMixIsHeld(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.V1, lab.Rates, lab.Lane("native"), lab.FS("ext4")) // in guests the buffered one got 1.03 to 1.14
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, seconds, block = 10_000_000, 5, 16384
	const count = rate * seconds / block
	old := filepath.Join(disk.Dir, "old")
	if out, err := exec.Command("dd", "if=/dev/zero", "of="+old, fmt.Sprint("bs=", block), fmt.Sprint("count=", count), "conv=fsync").CombinedOutput(); err != nil {
		t.Fatalf("dd: %v\n%s", err, out)
	}
	writers := map[string]string{
		"buffered": "if=/dev/zero of=" + disk.Dir + "/buffered iflag=fullblock",
		"direct":   "if=/dev/zero of=" + disk.Dir + "/direct iflag=fullblock oflag=direct",
		"reader":   "if=" + old + " of=/dev/null iflag=direct",
	}
	notes := t.TempDir()
	dd, err := exec.LookPath("dd") // a shell may have one of its own, which reports less
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for name, args := range writers {
		fmt.Fprintf(&script, "%s %s bs=%d count=%d 2>%s/%s & ", dd, args, block, count, notes, name)
	}
	script.WriteString("wait; sleep 0.1")
	measure := func() map[string]float64 {
		for name := range writers {
			_ = os.Remove(filepath.Join(disk.Dir, name)) // there is none the first time
		}
		weir(t, "run", "--write", fmt.Sprint(rate), "--read", fmt.Sprint(rate), "--on", disk.Dir, "--", "sh", "-c", script.String())
		got := map[string]float64{}
		for name := range writers {
			got[name] = took(t, filepath.Join(notes, name))
		}
		return got
	}
	var all map[string]float64
	lab.Ratio(t, "the buffered writer", rate, band(e), func() float64 {
		all = measure()
		return all["buffered"]
	})
	for _, name := range []string{"direct", "reader"} {
		t.Logf("%s: %.3f of its limit", name, all[name]/rate)
		if ratio := all[name] / rate; ratio < 0.05 || ratio > band(e).High {
			t.Errorf("%s: %.3f of its limit", name, ratio)
		}
	}
}

// took reads dd's report, and returns its rate in bytes a second.
func took(t *testing.T, note string) float64 {
	t.Helper()
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		bytes, rest, found := strings.Cut(line, " bytes ")
		_, rest, copied := strings.Cut(rest, "copied, ")
		seconds, _, timed := strings.Cut(rest, " s")
		if !found || !copied || !timed {
			continue
		}
		n, err1 := strconv.ParseFloat(bytes, 64)
		s, err2 := strconv.ParseFloat(seconds, 64)
		if err1 == nil && err2 == nil {
			return n / s
		}
	}
	t.Fatalf("dd reported %q", text)
	return 0
}
