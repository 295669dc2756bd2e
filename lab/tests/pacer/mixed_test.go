package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A buffered and a direct writer in one group together get its limit, one by the pacer and
// one by the kernel's rule. A direct reader beside them gets no more than its own.
func TestAMixIsHeld(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.V1, lab.Rates, lab.Lane("native"), lab.FS("ext4")) // in guests the buffered one got 1.03 to 1.14
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, apiece, block = 10_000_000, 3, 16384
	const count = rate * apiece / block
	old := filepath.Join(disk.Dir, "old")
	if out, err := exec.Command("dd", "if=/dev/zero", "of="+old, fmt.Sprint("bs=", block), fmt.Sprint("count=", count), "conv=fsync").CombinedOutput(); err != nil {
		t.Fatalf("dd: %v\n%s", err, out)
	}
	programs := map[string]string{
		"buffered": "if=/dev/zero of=" + disk.Dir + "/buffered iflag=fullblock",
		"direct":   "if=/dev/zero of=" + disk.Dir + "/direct iflag=fullblock oflag=direct",
		"reader":   "if=" + old + " of=/dev/null iflag=direct",
	}
	notes := t.TempDir()
	var script strings.Builder
	for name, args := range programs {
		// What the last moment was too fast is paid for before the shell goes on.
		fmt.Fprintf(&script, "(date +%%s%%N; dd %s bs=%d count=%d 2>/dev/null; sleep 0.1; date +%%s%%N) >%s/%s & ", args, block, count, notes, name)
	}
	script.WriteString("wait")
	measure := func() map[string]float64 {
		for name := range programs {
			_ = os.Remove(filepath.Join(disk.Dir, name)) // there is none the first time
		}
		weir(t, "run", "--write", fmt.Sprint(rate), "--read", fmt.Sprint(rate), "--on", disk.Dir, "--", "sh", "-c", script.String())
		got, longest := map[string]float64{}, 0.0
		for name := range programs {
			seconds := took(t, filepath.Join(notes, name)).Seconds()
			got[name] = rate * apiece / seconds
			if name != "reader" {
				longest = max(longest, seconds)
			}
		}
		got["both"] = 2 * rate * apiece / longest
		return got
	}
	var all map[string]float64
	lab.Ratio(t, "both writers", rate, band(e), func() float64 {
		all = measure()
		return all["both"]
	})
	for _, name := range []string{"buffered", "direct", "reader"} {
		t.Logf("%s: %.3f of its limit", name, all[name]/rate)
		if ratio := all[name] / rate; ratio < 0.05 || ratio > band(e).High {
			t.Errorf("%s: %.3f of its limit", name, ratio)
		}
	}
}

// took reads when a shell began and ended.
func took(t *testing.T, note string) time.Duration {
	t.Helper()
	text, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	var began, ended time.Duration // since 1970
	if _, err := fmt.Sscan(string(text), &began, &ended); err != nil {
		t.Fatalf("%s: %q: %v", note, text, err)
	}
	return ended - began - 100*time.Millisecond
}
