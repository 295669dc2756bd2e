package kills_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// A held is what is in force of a group: the rule, and what weir's pacer holds of it, in bytes
// a second; 0: none.
type held struct{ rule, paced uint64 }

// A weir that also asks the pacer is killed at each point. The next weir leaves both the
// rule and the pacer as they were before, or both as they were asked to be.
func TestKillAtEachPointOfPacing(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.OnceV1, lab.PtraceCall, lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	root := e.Cgroups.Blkio
	if e.Cgroups.IOInV2 {
		root = e.Cgroups.Unified
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(root, "kill-points")
	lab.Cgroup(t, group)
	sleeper := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs" && exec sleep 3600`, group)
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait() // killed
	})
	const target = "cgroup:/kill-points"
	set := func(rate int, hold string) []string {
		return []string{"set", target, "--quiet", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--hold", hold}
	}
	clear := []string{"clear", target, "--quiet"}
	t.Cleanup(func() { weir(t, clear...) })
	for _, c := range []struct {
		name   string
		before []string // what makes it so
		verb   []string
		was    held
		is     held
	}{
		{"set", clear, set(2e6, "pacer"), held{}, held{2e6, 2e6}},
		{"change", set(1e6, "pacer"), set(2e6, "pacer"), held{1e6, 1e6}, held{2e6, 2e6}},
		{"end the pacer", set(1e6, "pacer"), set(2e6, "kernel"), held{1e6, 1e6}, held{2e6, 0}},
		{"clear", set(1e6, "pacer"), clear, held{1e6, 1e6}, held{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			points, done := 0, 0
			for n, killed := 1, true; killed; n++ {
				weir(t, c.before...)
				if got := inForce(t, target); got != c.was {
					t.Fatalf("before it is %+v, want %+v", got, c.was)
				}
				killed = lab.KilledAt(t, n, c.verb...)
				got := inForce(t, target)
				switch {
				case got == c.is:
					done++
				case got != c.was || !killed:
					t.Fatalf("killed at %d: %t, and left %+v; want %+v or %+v", n, killed, got, c.was, c.is)
				}
				points++
				if records := left(t); slices.ContainsFunc(records, func(name string) bool { return strings.HasPrefix(name, "set.") }) {
					t.Fatalf("killed at %d: the next weir left %v", n, records)
				}
			}
			if points < 5 || done < 1 {
				t.Errorf("%d points, of which %d are after it was done: that is not all of them", points, done)
			}
			t.Logf("%d points, after %d of them it was done", points, done)
		})
	}
}

// inForce is what weir show, which cleans up before, says of a target on one disk.
func inForce(t *testing.T, target string) (is held) {
	t.Helper()
	var doc struct {
		Groups []struct {
			Paced   uint64 `json:"paced_wbps"`
			Devices []struct{ Limit limit.Limit }
		}
	}
	if err := json.Unmarshal([]byte(weir(t, "show", target, "--json", "--for", "0")), &doc); err != nil {
		t.Fatal(err)
	}
	for _, g := range doc.Groups {
		is.paced = g.Paced
		for _, d := range g.Devices {
			is.rule, _ = d.Limit.WBPS.Number()
		}
	}
	return is
}

func weir(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("weir", args...).Output()
	if err != nil {
		t.Fatalf("weir %v: %v\n%s", args, err, out)
	}
	return string(out)
}
