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

// loaded is what of BPF the kernel has, by number.
type loaded struct {
	programs map[ebpf.ProgramID]string // their names
	maps     map[ebpf.MapID]string
	links    map[link.ID]ebpf.ProgramID
}

// loadedNow lists what the kernel has. What goes meanwhile is left out.
func loadedNow(t *testing.T) loaded {
	t.Helper()
	all := loaded{map[ebpf.ProgramID]string{}, map[ebpf.MapID]string{}, map[link.ID]ebpf.ProgramID{}}
	var err error
	for id := ebpf.ProgramID(0); ; {
		if id, err = ebpf.ProgramGetNextID(id); err != nil {
			break
		}
		if p, err := ebpf.NewProgramFromID(id); err == nil {
			if info, err := p.Info(); err == nil {
				all.programs[id] = info.Name
			}
			p.Close()
		}
	}
	last(t, err)
	for id := ebpf.MapID(0); ; {
		if id, err = ebpf.MapGetNextID(id); err != nil {
			break
		}
		if m, err := ebpf.NewMapFromID(id); err == nil {
			if info, err := m.Info(); err == nil {
				all.maps[id] = info.Name
			}
			m.Close()
		}
	}
	last(t, err)
	err = linksOf(all)
	for began := time.Now(); errors.Is(err, unix.EAGAIN) && time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		err = linksOf(all) // somebody was attaching one
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func linksOf(all loaded) error {
	links := &link.Iterator{}
	defer links.Close()
	for links.Next() {
		if info, err := links.Link.Info(); err == nil {
			all.links[links.ID] = info.Program
		}
	}
	return links.Err()
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
	killTraces(t, 20)
}

func TestKillTraceOften(t *testing.T) {
	needTrace(t, lab.Whole)
	killTraces(t, 100)
}

func killTraces(t *testing.T, times int) {
	t.Helper()
	began := time.Now()
	trace := startTrace(t, fmt.Sprintf("pid:%d", os.Getpid()))
	attached := time.Since(began)
	programs, maps, links := held(t, helperOf(t, trace.cmd.Process.Pid))
	programs = append(programs, inTables(t, maps)...)
	during := loadedNow(t)
	t.Logf("attached in %s: programs %v, maps %v, links %v", attached, programs, maps, links)
	var names []string // of what a trace loads
	for _, id := range programs {
		names = append(names, during.programs[id])
	}
	for _, id := range maps {
		// Settings are in a map that others' programs have by the same name.
		if name := during.maps[id]; !strings.HasPrefix(name, ".") {
			names = append(names, name)
		}
	}
	if len(programs) < 3 || len(maps) < 5 || len(links) < 3 || slices.Contains(names, "") {
		t.Fatalf("a trace has programs %v, maps %v and links %v open, named %v", programs, maps, links, names)
	}
	if err := trace.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 30*time.Second, "all of the trace to go", func() bool {
		now := loadedNow(t)
		for _, id := range programs {
			if _, there := now.programs[id]; there {
				return false
			}
		}
		for _, id := range maps {
			if _, there := now.maps[id]; there {
				return false
			}
		}
		for _, id := range links {
			if _, there := now.links[id]; there {
				return false
			}
		}
		return !now.any(names)
	})
	for i := range times {
		lab.Killed(t, attached, "trace", "--json", "--for", "30m")
		lab.Await(t, 30*time.Second, fmt.Sprintf("all of trace %d to go", i), func() bool { return !loadedNow(t).any(names) })
	}
}

// any reports whether anything of such names is there.
func (l loaded) any(names []string) bool {
	for _, name := range l.programs {
		if slices.Contains(names, name) {
			return true
		}
	}
	for _, name := range l.maps {
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}
