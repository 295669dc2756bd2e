package prove_test

import (
	"fmt"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// No verdict is wrong beside a busy processor: weir never calls held what is not, nor the
// other way round. Cannot tell is not wrong.
func TestSoakVerdicts(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	load := exec.Command("sh", "-c", "while :; do :; done")
	if err := load.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = load.Process.Kill()
		_ = load.Wait()
	})
	var last unix.CPUSet
	if err := unix.SchedGetaffinity(0, &last); err != nil {
		t.Fatal(err)
	}
	if n := last.Count(); n > 1 { // with one only, the load would be a neighbour and not noise
		second := 0
		for cpu, seen := 0, 0; seen < n; cpu++ {
			if last.IsSet(cpu) {
				second, seen = cpu, seen+1
			}
		}
		last.Zero()
		last.Set(second)
		if err := unix.SchedSetaffinity(load.Process.Pid, &last); err != nil {
			t.Fatal(err)
		}
	}
	wrong := map[string][]string{"direct write": {"not held"}, "buffered write": {"not held"}}
	if !e.Cgroups.IOInV2 {
		wrong["buffered write"] = []string{"held", "held at the device"}
	}
	told := map[string]int{}
	runs := lab.Times(t, "WEIR_RUNS", 1)
	for range runs {
		var doc document
		lab.ProveOnce(t, &doc, "--write", "10MB/s", "--paths", "direct,buffered", "--for", "1s", "--hold", "kernel", "--on", disk.Dir)
		rows := doc.byName(t)
		for name, verdicts := range wrong {
			r := rows[name]
			told[name+" "+r.Verdict]++
			for _, v := range verdicts {
				if r.Verdict == v {
					t.Errorf("%s: %s (%s), ratio %.2f", name, r.Verdict, r.Reason, r.Ratio)
				}
			}
		}
	}
	t.Log(fmt.Sprint(runs, " runs: ", told))
	for name := range wrong {
		if untold := told[name+" cannot tell"]; runs > 10 && untold > runs/2 {
			t.Errorf("%s: %d of %d cannot be told", name, untold, runs)
		}
	}
}
