package limits_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// Two weirs set a limit at once. Both exit with 0, and the rule in force is one of the two.
func TestTwoAtOnce(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.OnceV2, lab.NoSystemd)
	races(t, e, lab.More(12, 25))
}

// The same, often enough to meet rare cases.
func TestTwoAtOnceOften(t *testing.T) {
	races(t, lab.Need(t, lab.Root, lab.Whole), lab.Times(t, "WEIR_RACES", 200))
}

func races(t *testing.T, e environ.Environ, rounds int) {
	disk := lab.RawDisk(t)
	on := disk.Number.String()
	group := filepath.Join(e.Cgroups.Unified, "lab-races")
	if !e.Cgroups.IOInV2 {
		group = filepath.Join(e.Cgroups.Blkio, "lab-races")
	}
	lab.Cgroup(t, group)
	target := "cgroup:/lab-races"
	set := func(rate int) []string {
		return []string{"set", "-q", target, "--write", fmt.Sprint(rate), "--on", on}
	}
	const first, second = 2_000_000, 1_000_000
	for _, with := range []struct {
		name  string
		args  []string
		rules []int
	}{
		{"set", set(second), []int{first, second}},
		{"clear", []string{"clear", "-q", target}, []int{first, 0}},
	} {
		for range rounds {
			atATime(t, set(first), with.args)
			if now := writeRule(t, group, on); !slices.Contains(with.rules, now) {
				t.Fatalf("set and %s at once left a rule of %d", with.name, now)
			}
		}
	}
	done := 0
	for range rounds {
		if raceWithFile(t, group, on, set(first), first) {
			done++
		}
	}
	if done == 0 {
		t.Errorf("none of %d sets beside a write to the file was done", rounds)
	}
	var many [][]string
	for i := range 100 {
		many = append(many, set(first+i))
	}
	atATime(t, many...)
	if now := writeRule(t, group, on); now < first || now >= first+len(many) {
		t.Errorf("a hundred at once left a rule of %d", now)
	}
	if e.Has(string(lab.NoSystemd)) { // a scope would not be below the test's own group
		runs := rounds / 5 // each takes as long as five sets
		if rounds >= 1000 {
			runs = rounds
		}
		for range runs {
			raceWithRun(t, e, on)
		}
	}
}

// raceWithFile sets a limit while somebody else writes another one into the kernel's file. What
// weir says with its status is true: its rule was in force, or another one was found there.
func raceWithFile(t *testing.T, group, on string, set []string, rate int) (done bool) {
	t.Helper()
	const theirs = 3_000_000
	file, line := filepath.Join(group, "io.max"), fmt.Sprintf("%s wbps=%d", on, theirs)
	if _, err := os.Stat(file); err != nil {
		file, line = filepath.Join(group, "blkio.throttle.write_bps_device"), fmt.Sprint(on, " ", theirs)
	}
	var both sync.WaitGroup
	both.Go(func() {
		time.Sleep(rand.N(8 * time.Millisecond)) // somewhere within what weir does
		if err := os.WriteFile(file, []byte(line), 0); err != nil {
			t.Error(err)
		}
	})
	out, err := exec.Command("weir", set...).CombinedOutput()
	both.Wait()
	now := writeRule(t, group, on)
	if now != rate && now != theirs || err != nil && (now != theirs || !bytes.Contains(out, []byte("the kernel keeps"))) {
		t.Fatalf("weir set and a write to %s at once left a rule of %d; weir: %v\n%s", file, now, err, out)
	}
	return err == nil
}

// raceWithRun sets the limit of a group that weir run has just made.
func raceWithRun(t *testing.T, e environ.Environ, on string) {
	t.Helper()
	run := exec.Command("weir", "run", "-q", "--name", "lab-race", "--hold", "kernel", "--write", "2000000", "--on", on, "--", "cat")
	var said bytes.Buffer
	run.Stderr = &said
	stdin, err := run.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	dir := groupCalled(t, e, "weir-lab-race")
	mount := e.Cgroups.Unified
	if !e.Cgroups.IOInV2 {
		mount = e.Cgroups.Blkio
	}
	path := strings.TrimPrefix(dir, mount)
	weir(t, "set", "-q", "cgroup:"+path, "--write", "1000000", "--on", on)
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	// weir run had the group locked until its own rule was in force.
	if now := writeRule(t, dir, on); now != 1_000_000 {
		t.Errorf("the rule is %d after the later weir set, which ended with 0", now)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run.Wait(); err != nil {
		t.Fatalf("weir run: %v\n%s", err, &said)
	}
}

// groupCalled waits until there is a group of a name, and returns its directory.
func groupCalled(t *testing.T, e environ.Environ, name string) string {
	t.Helper()
	top := e.Cgroups.Unified
	if !e.Cgroups.IOInV2 {
		top = e.Cgroups.Blkio
	}
	for deadline := time.Now().Add(e.Patience(20 * time.Second)); ; {
		for _, pattern := range []string{name, "*/" + name, "*/*/" + name, "*/*/*/" + name} {
			if found, _ := filepath.Glob(filepath.Join(top, pattern)); len(found) == 1 {
				return found[0]
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no group %s", name)
		}
	}
}

// atATime runs weirs at once, which must all end with 0.
func atATime(t *testing.T, all ...[]string) {
	t.Helper()
	var running sync.WaitGroup
	for _, args := range all {
		running.Go(func() {
			if out, err := exec.Command("weir", args...).CombinedOutput(); err != nil {
				t.Errorf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// writeRule reads a group's limit on bytes written to a device; 0: none.
func writeRule(t *testing.T, dir, dev string) int {
	t.Helper()
	for _, file := range []string{"io.max", "blkio.throttle.write_bps_device"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var rate int
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != dev {
				continue
			}
			for _, f := range fields[1:] {
				value := strings.TrimPrefix(f, "wbps=")
				if file == "io.max" && value == f || value == "max" {
					continue
				}
				if _, err := fmt.Sscan(value, &rate); err != nil {
					t.Fatal(err)
				}
				return rate
			}
		}
		return 0
	}
	t.Fatalf("%s has no rules", dir)
	return 0
}
