package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// A tracing is a weir trace that runs until it is told to end.
type tracing struct {
	cmd   *exec.Cmd
	data  *bytes.Buffer
	said  *messages
	ended chan error
}

// startTrace returns when everything is attached. Without a target the whole host is traced.
func startTrace(t *testing.T, target string, flags ...string) *tracing {
	t.Helper()
	if target != "" {
		flags = append(flags, target)
	}
	r := &tracing{cmd: exec.Command("weir", append([]string{"trace", "--for", "30m", "--json"}, flags...)...),
		data: &bytes.Buffer{}, said: &messages{}, ended: make(chan error, 1)}
	r.cmd.Stdout, r.cmd.Stderr = r.data, r.said
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		err := <-r.ended
		r.ended <- err
	})
	lab.Await(t, time.Minute, "weir to trace", func() bool { return r.said.has("tracing ") || len(r.ended) > 0 })
	if len(r.ended) > 0 {
		t.Fatalf("weir trace ended\n%s", r.said)
	}
	return r
}

// end ends the trace as ctrl-c does.
func (r *tracing) end(t *testing.T) (doc report) {
	t.Helper()
	if len(r.ended) > 0 {
		t.Fatalf("weir trace has ended\n%s", r.said)
	}
	if err := r.cmd.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 30*time.Second, "the trace to end", func() bool { return len(r.ended) > 0 })
	err := <-r.ended
	r.ended <- err
	if err != nil {
		t.Fatalf("weir trace: %v\n%s", err, r.said)
	}
	if err := json.Unmarshal(r.data.Bytes(), &doc); err != nil {
		t.Fatalf("%v: %q", err, r.data)
	}
	return doc
}

// memoryPeak is the most memory that the trace's process has had, bytes.
func (r *tracing) memoryPeak(t *testing.T) uint64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	text, _, ok := strings.Cut(strings.TrimSpace(rest), " kB")
	kib, err := strconv.ParseUint(text, 10, 64)
	if !ok || err != nil {
		t.Fatalf("peak memory %q: %v", text, err)
	}
	return kib << 10
}

func TestManyProcesses(t *testing.T) {
	needTraceNatively(t, lab.FS("ext4"))
	manyProcesses(t, 1000)
}

func TestTenThousandProcesses(t *testing.T) {
	needTrace(t, lab.NoSystemd, lab.Whole, lab.FS("ext4"))
	manyProcesses(t, 10_000)
}

// manyProcesses traces processes that write once each, to a file of their own.
func manyProcesses(t *testing.T, processes int) {
	t.Helper()
	const shells, text = 4, "x\n"
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	trace := startTrace(t, "cgroup:/"+g.name, "--ops", "write", "--files", "--slower", "1ns")
	before := trace.memoryPeak(t)
	script := fmt.Sprintf(`for dir in %s; do echo 0 >$dir/cgroup.procs; done
i=$0; while [ $i -lt %d ]; do /bin/echo x >%s/$i; i=$((i+%d)); done`, strings.Join(g.dirs(), " "), processes, disk.Dir, shells)
	var all []*exec.Cmd
	for first := range shells {
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script, strconv.Itoa(first))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("processes: %v", err)
		}
	}
	grown := int64(trace.memoryPeak(t)) - int64(before) // it may give some back
	trace.end(t)
	var doc struct {
		Operations []struct{ Count, Errors, Bytes uint64 }
		Files      []struct{ Count uint64 }
		Slow       []struct{}
		SlowCount  uint64 `json:"slow_count"`
		Lost       struct{ Tasks, Missed, Events, Files uint64 }
	}
	if err := json.Unmarshal(trace.data.Bytes(), &doc); err != nil || len(doc.Operations) != 1 {
		t.Fatalf("%v: %q", err, trace.data)
	}
	inFiles := uint64(0)
	for _, f := range doc.Files {
		inFiles += f.Count
	}
	writes, want := doc.Operations[0], uint64(processes)
	t.Logf("%d processes: %+v, %d in %d files, %d slow, lost %+v; memory grew by %d KiB from %d KiB", processes, writes, inFiles, len(doc.Files), doc.SlowCount, doc.Lost, grown>>10, before>>10)
	if lost := doc.Lost.Tasks + doc.Lost.Missed; writes.Count > want || writes.Count+lost < want {
		t.Errorf("%d writes are counted and %d lost, want %d", writes.Count, lost, want)
	}
	if writes.Errors != 0 || writes.Bytes != uint64(len(text))*writes.Count {
		t.Errorf("%d writes of %d bytes, %d failed", writes.Count, writes.Bytes, writes.Errors)
	}
	if inFiles+doc.Lost.Files != writes.Count {
		t.Errorf("%d writes are in sums by file, %d lost, want %d", inFiles, doc.Lost.Files, writes.Count)
	}
	if doc.SlowCount+doc.Lost.Events != writes.Count || len(doc.Slow) > 1000 {
		t.Errorf("%d writes were slow, %d lost, %d listed, want %d", doc.SlowCount, doc.Lost.Events, len(doc.Slow), writes.Count)
	}
	if grown > 48<<20 {
		t.Errorf("weir's memory grew by %d bytes", grown)
	}
}

// A group can be removed while it is traced. The trace reports what it saw.
func TestGroupDisappears(t *testing.T) {
	needTrace(t, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	trace := startTrace(t, "cgroup:/"+g.name)
	file := filepath.Join(disk.Dir, "f")
	job{File: file, Groups: g.dirs(), Block: 4 << 10, Size: 1 << 30, Pause: time.Millisecond}.start(t)
	lab.Await(t, time.Minute, "the job to write", func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() >= 100*4<<10
	})
	for _, dir := range g.dirs() {
		killAll(t, dir)
	}
	for _, dir := range g.dirs() {
		lab.Await(t, 30*time.Second, dir+" to be empty", func() bool { return len(processes(t, dir)) == 0 })
		if err := os.Remove(dir); err != nil {
			t.Errorf("while it is traced: %v", err)
		}
	}
	if got := trace.end(t).of(t, "write").Count; got < 100 {
		t.Errorf("%d writes were seen, want 100 or more", got)
	}
}

func processes(t *testing.T, group string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(data))
}

func killAll(t *testing.T, group string) {
	t.Helper()
	for _, text := range processes(t, group) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
			t.Errorf("kill %d: %v", pid, err)
		}
	}
}

// Two traces of the same target report the same.
func TestTwoTraces(t *testing.T) {
	needTraceNatively(t, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	one, two := startTrace(t, "cgroup:/"+g.name), startTrace(t, "cgroup:/"+g.name)
	own := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Block: 16 << 10, Size: 16 << 20, Fsync: 8}.start(t)()
	first, second := one.end(t), two.end(t)
	for kind, count := range map[string]int{"write": own.Write.Count, "fsync": own.Fsync.Count} {
		a, b := first.of(t, kind), second.of(t, kind)
		t.Logf("%s: %d and %d of %d, %.3f and %.3f s", kind, a.Count, b.Count, count, a.Seconds, b.Seconds)
		const few = 3
		if a.Count < fewest(count, first.Lost) || b.Count < fewest(count, second.Lost) || max(a.Count, b.Count) > count+few {
			t.Errorf("%s: %d and %d were seen, want %d", kind, a.Count, b.Count, count)
		}
		if ratio := a.Seconds / b.Seconds; ratio < 0.9 || ratio > 1.1 {
			lab.Measures(t)
			t.Errorf("%s: they took %.3f and %.3f s", kind, a.Seconds, b.Seconds)
		}
	}
}
