package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// weird is killed at random moments while containers start and end. After each kill the next weird
// has all of them at their plans' limits again, nothing else has a limit, and nothing stays frozen:
// one of them writes all the time, and has to get on (on v1 weir's pacer pauses it).
func TestAgentIsKilled(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	plain, busy := g.start("plain", nil), g.start("web-busy", nil, "busy", disk.Node)
	var planned []*container
	want := map[*container]uint64{}
	start := func(i int) {
		c, rate := (*container)(nil), uint64(smallRate)
		if i%2 == 0 {
			c = g.start(fmt.Sprint("web-", i), nil)
		} else {
			c, rate = g.start(fmt.Sprint("db-", i), map[string]string{"weir.plan": "large"}), largeRate
		}
		planned, want[c] = append(planned, c), rate
	}
	for i := range 6 {
		start(i)
	}
	wrote := func() int64 { return written(t, busy) }
	kills := lab.Times(t, "WEIR_KILLS", lab.More(8, 20))
	lost, births := 0, 6
	var most time.Duration
	for range kills {
		w.begin()
		until := time.Now().Add(rand.N(200 * time.Millisecond))
		for time.Now().Before(until) { // what starts and ends meanwhile
			if rand.IntN(3) == 0 {
				i := rand.IntN(len(planned))
				g.end(planned[i])
				delete(want, planned[i])
				planned = append(planned[:i], planned[i+1:]...)
				start(births)
				births++
			}
			time.Sleep(rand.N(20 * time.Millisecond))
		}
		// A change that is half done may be taken back: a limit is settled when a weird has said so.
		settled, said := map[*container]bool{}, w.said()
		for _, c := range planned {
			settled[c] = g.wbps(c, disk) == want[c] && strings.Contains(said, fmt.Sprintf("msg=\"limits set\" target=docker:%s ", c.name))
		}
		w.kill()
		for _, c := range planned { // a limit that was in force is not lost with weird
			if got := g.wbps(c, disk); settled[c] && got != want[c] {
				lost++
				t.Errorf("%s: %d after a kill, %d before", c.name, got, want[c])
			}
		}
		// On the right target, or not there yet: never another plan's.
		for _, c := range planned {
			if got := g.wbps(c, disk); got != want[c] && got != 0 {
				t.Errorf("%s: the rule is %d, which nobody wants", c.name, got)
			}
		}
		if got := g.wbps(plain, disk); got != 0 {
			t.Fatalf("what has no plan has the rule %d", got)
		}
		before, began := wrote(), time.Now()
		lab.Await(t, patience, "nothing to be frozen", func() bool { return len(frozen(t, planned)) == 0 })
		lab.Await(t, patience, "the writer to get on", func() bool { return wrote() > before })
		most = max(most, time.Since(began))
	}
	w.start()
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, busy)
	for _, c := range planned {
		g.awaitRules(lab.Patience(t, patience), disk, want[c], c)
	}
	if got := g.wbps(plain, disk); got != 0 {
		t.Errorf("what has no plan has the rule %d", got)
	}
	t.Logf("%d kills, %d containers born: %d limits lost; the writer got on within %v", kills, births, lost, most)
	g.letGo(w, busy, disk)
}

// letGo ends weird and lifts a writer's limit: what that has in memory goes to the disk when it ends, 64 MB
// for which its plan takes 20 s.
func (g *engine) letGo(w *weird, busy *container, disk *lab.TestDisk) {
	g.t.Helper()
	w.stop()
	g.overwrite(busy, disk, 1_000_000_000)
}

// written is how much a container has written.
func written(t *testing.T, c *container) (n int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "wchar: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// The pacer and both of its guards are killed at once. No weir is called, and weird has the paused
// processes go on, soon.
func TestAgentResumesThePaused(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.NoSystemd, lab.V1)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	w := newWeird(t, g, two(disk))
	busy := g.start("web-busy", nil, "busy", disk.Node)
	w.start()
	g.awaitRules(lab.Patience(t, patience), disk, smallRate, busy)
	var most time.Duration
	kills := lab.Times(t, "WEIR_KILLS", 3)
	for range kills {
		var helpers []int
		lab.Await(t, patience, "a pacer and two guards", func() bool {
			helpers = append(lab.Called(t, "__pacer"), lab.Called(t, "__guard")...)
			return len(helpers) == 3
		})
		lab.Await(t, patience, "the writer to be paused", func() bool { return len(frozen(t, []*container{busy})) == 1 })
		for _, pid := range helpers {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
				t.Fatal(err)
			}
		}
		before, began := written(t, busy), time.Now()
		lab.Await(t, patience, "the writer to get on", func() bool { return written(t, busy) > before })
		most = max(most, time.Since(began))
		time.Sleep(5 * time.Second) // for as long weird leaves a pacer that it has started alone
	}
	t.Logf("%d times all were killed at once: the writer got on within %v", kills, most.Round(time.Millisecond))
	if limit := lab.Patience(t, 1500*time.Millisecond); most > limit {
		t.Errorf("the writer got on after %v, want %v at most", most, limit)
	}
	g.letGo(w, busy, disk)
}

// frozen lists containers whose process is in a group that is frozen.
func frozen(t *testing.T, all []*container) (names []string) {
	t.Helper()
	for _, c := range all {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", c.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
			file, is := filepath.Join("/sys/fs/cgroup/freezer", fields[2], "freezer.state"), "FROZEN"
			if fields[1] == "" {
				file, is = filepath.Join(lab.Here(t).Cgroups.Unified, fields[2], "cgroup.events"), "frozen 1"
			} else if fields[1] != "freezer" {
				continue
			}
			state, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if strings.Contains(string(state), is) {
				names = append(names, c.name)
			}
		}
	}
	return names
}
