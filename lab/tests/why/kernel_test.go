package why_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// For a direct writer, what weir why calls a bug of this kernel is one. Where it says
// nothing, the limit holds. Where it says that a bug may be there, the limit holds too,
// because no kernel of the lab has it.
func TestWhyKernelBugs(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Root, lab.Rates, lab.Long, lab.Guest, lab.NoSystemd)
	for name, c := range map[string]struct {
		commit     string // by which weir why names the bug
		bytes, ops int    // limits per second; 0: none
		block      int    // of the writer, in KiB
		split      int    // size of the disk's requests, in KiB; 0: as it is
		bad        lab.Band
	}{
		"split":   {commit: "9f5ede3c01f9", ops: 64, block: 1024, split: 64, bad: lab.Band{Low: 5, High: 20}},
		"few":     {commit: "1beabab88ece", ops: 5, block: 4, bad: lab.Band{Low: 0.5, High: 0.8}},
		"low":     {commit: "29cb95593430", bytes: 300_000, block: 32},
		"byops":   {commit: "f2c4902bd08b", bytes: 1_000_000, ops: 100, block: 4},
		"bybytes": {commit: "f2c4902bd08b", bytes: 1_000_000, ops: 100, block: 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := lab.RawDisk(t)
			if c.split != 0 {
				file := "/sys/dev/block/" + disk.Number.String() + "/queue/max_sectors_kb"
				before, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = os.WriteFile(file, before, 0) })
				if err := os.WriteFile(file, []byte(strconv.Itoa(c.split)), 0); err != nil {
					t.Fatal(err)
				}
			}
			g := group{}
			if lab.Here(t).Cgroups.IOInV2 {
				g = newGroup(t, nil, "why-bugs-"+name, "io")
			} else {
				g = newGroup(t, nil, "why-bugs-"+name)
			}
			args := []string{"set", "cgroup:" + g.path, "--on", disk.Node}
			if c.bytes != 0 {
				args = append(args, "--write", strconv.Itoa(c.bytes))
			}
			if c.ops != 0 {
				args = append(args, "--write-iops", strconv.Itoa(c.ops))
			}
			tool(t, "weir", args...)
			said := ""
			for _, f := range explain(t, "cgroup:"+g.path, "--on", disk.Node).Findings {
				if f.Code == "kernel-bug" && strings.Contains(f.Text, c.commit) {
					said = f.Severity
				}
			}
			cmd := exec.Command("sh", "-c", fmt.Sprintf("echo $$ > %s; exec dd if=/dev/zero of=%s bs=%dk oflag=direct",
				filepath.Join(g.dir, "cgroup.procs"), disk.Node, c.block))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // killed
			})
			time.Sleep(time.Second)
			measure := func() float64 {
				const window = 8 * time.Second
				before, began := lab.DeviceTraffic(t, disk.Number), time.Now()
				time.Sleep(window)
				after, took := lab.DeviceTraffic(t, disk.Number), time.Since(began).Seconds()
				ratio := 0.0
				if c.bytes != 0 {
					ratio = float64(after.WriteBytes-before.WriteBytes) / took / float64(c.bytes)
				}
				if c.ops != 0 {
					ratio = max(ratio, float64(after.Writes-before.Writes)/took/float64(c.ops))
				}
				return ratio
			}
			switch said {
			case "hurts":
				lab.Ratio(t, "without "+c.commit, 1, c.bad, measure)
			default: // of 5 operations a second 0.900 were seen
				lab.Ratio(t, fmt.Sprintf("%s is not known to be missing (%q)", c.commit, said), 1, lab.Band{Low: 0.87, High: 1.05}, measure)
			}
		})
	}
}
