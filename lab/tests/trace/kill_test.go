package trace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// programsNow lists the programs that the kernel has, with their names. What goes meanwhile is left out.
func programsNow(t *testing.T) map[ebpf.ProgramID]string {
	t.Helper()
	all := map[ebpf.ProgramID]string{}
	for id := ebpf.ProgramID(0); ; {
		var err error
		if id, err = ebpf.ProgramGetNextID(id); err != nil {
			last(t, err)
			return all
		}
		if p, err := ebpf.NewProgramFromID(id); err == nil {
			if info, err := p.Info(); err == nil {
				all[id] = info.Name
			}
			p.Close()
		}
	}
}

// mapsNow lists the maps that the kernel has, and opens none.
func mapsNow(t *testing.T) (all []ebpf.MapID) {
	t.Helper()
	for id := ebpf.MapID(0); ; all = append(all, id) {
		var err error
		if id, err = ebpf.MapGetNextID(id); err != nil {
			last(t, err)
			return all
		}
	}
}

// mapName is "" for a map that has gone.
func mapName(id ebpf.MapID) string {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return ""
	}
	defer m.Close()
	if info, err := m.Info(); err == nil {
		return info.Name
	}
	return ""
}

// linksNow lists the links that the kernel has.
func linksNow(t *testing.T) map[link.ID]bool {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		all, links := map[link.ID]bool{}, &link.Iterator{}
		for links.Next() {
			all[links.ID] = true
		}
		err := links.Err()
		links.Close()
		if err == nil {
			return all
		}
		if !errors.Is(err, unix.EAGAIN) || time.Since(began) > time.Second { // EAGAIN: somebody was attaching one
			t.Fatal(err)
		}
	}
}

func last(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// helperOf is the helper of a weir, which has the trace: the child that has programs.
func helperOf(t *testing.T, weir int) int {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", weir))
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, task := range tasks { // any of its threads can have started it
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", weir, task.Name()))
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			if programs, _, links := held(t, pid); len(programs) > 0 && len(links) > 0 {
				return pid
			}
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended
			state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			seen = append(seen, fmt.Sprintf("%q %q", command, state))
		}
	}
	t.Fatalf("process %d has no child with programs: %q", weir, seen)
	return 0
}

// held is what of BPF a process has open, as its /proc/PID/fdinfo says.
func held(t *testing.T, pid int) (programs []ebpf.ProgramID, maps []ebpf.MapID, links []link.ID) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // closed meanwhile
		}
		for line := range strings.Lines(string(text)) {
			field, value, _ := strings.Cut(line, ":")
			id, err := strconv.ParseUint(strings.TrimSpace(value), 10, 32)
			if err != nil {
				continue
			}
			switch field {
			case "prog_id":
				programs = append(programs, ebpf.ProgramID(id))
			case "map_id":
				maps = append(maps, ebpf.MapID(id))
			case "link_id":
				links = append(links, link.ID(id))
			}
		}
	}
	return programs, maps, links
}

// inTables are the programs that tables of programs hold, of some maps: a process that has loaded
// them need not have them open.
func inTables(t *testing.T, maps []ebpf.MapID) (all []ebpf.ProgramID) {
	t.Helper()
	for _, id := range maps {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		if m.Type() == ebpf.ProgramArray {
			for at := range m.MaxEntries() {
				var program uint32
				if err := m.Lookup(at, &program); err == nil {
					all = append(all, ebpf.ProgramID(program))
				} else if !errors.Is(err, ebpf.ErrKeyNotExist) {
					t.Fatal(err)
				}
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	return all
}

// A kill removes everything that a trace has loaded, while it runs and while it attaches.
func TestKillTrace(t *testing.T) {
	needTrace(t, lab.Whole) // by default natively, where a trace begins ten times as fast
	killTraces(t, 4)
}

func TestKillTraceNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"))
	killTraces(t, lab.More(10, 20))
}

func TestKillTraceOften(t *testing.T) {
	needTrace(t, lab.Whole)
	killTraces(t, 100)
}

func killTraces(t *testing.T, times int) {
	t.Helper()
	before, began := mapsNow(t), time.Now()
	trace := startTrace(t, fmt.Sprintf("pid:%d", os.Getpid()))
	attached := time.Since(began)
	programs, maps, links := held(t, helperOf(t, trace.cmd.Process.Pid))
	programs = append(programs, inTables(t, maps)...)
	during := programsNow(t)
	t.Logf("attached in %s: programs %v, maps %v, links %v", attached, programs, maps, links)
	var names []string // of what a trace loads
	for _, id := range programs {
		names = append(names, during[id])
	}
	for _, id := range maps {
		// Settings are in a map that others' programs have by the same name.
		if name := mapName(id); !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	if len(programs) < 3 || len(maps) < 5 || len(links) < 3 || slices.Contains(names, "") {
		t.Fatalf("a trace has programs %v, maps %v and links %v open, named %v", programs, maps, links, names)
	}
	if err := trace.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	left := leftovers{names: names, before: before, since: map[ebpf.MapID]time.Time{}}
	lab.Await(t, 30*time.Second, "all of the trace to go", func() bool {
		now := linksNow(t)
		return !slices.ContainsFunc(links, func(id link.ID) bool { _, there := now[id]; return there }) && !left.any(t)
	})
	for i := range times {
		lab.Killed(t, attached, "trace", "--json", "--for", "30m")
		lab.Await(t, 30*time.Second, fmt.Sprintf("all of trace %d to go", i), func() bool { return !left.any(t) })
	}
}

// leftovers are what killed traces have left behind.
type leftovers struct {
	names  []string
	before []ebpf.MapID
	since  map[ebpf.MapID]time.Time // when each map was seen first
}

// any reports whether a program or map of such a name is there. A map is not opened in its first
// seconds: if it is one of the tables of programs, its last user may have closed it just now, and
// whoever opens it before the kernel has emptied it makes it stay for good (measured on 6.18: 137 of 138).
func (l leftovers) any(t *testing.T) bool {
	t.Helper()
	for _, name := range programsNow(t) {
		if slices.Contains(l.names, name) {
			return true
		}
	}
	for _, id := range mapsNow(t) {
		switch since, seen := l.since[id]; {
		case slices.Contains(l.before, id):
		case !seen:
			l.since[id] = time.Now()
			return true
		case time.Since(since) < 5*time.Second, slices.Contains(l.names, mapName(id)):
			return true
		}
	}
	return false
}
