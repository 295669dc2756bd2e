package trace_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// A probed is a system call whose time a trace of another process may change.
type probed struct {
	name string
	// most and target are how many times as long it may take during a trace of another process
	// and of its own, where functions take programs; 0: any.
	most, target float64
	batch        int // calls between two looks at the clock: too few for another process to get the processor
	call         func(fd int, buf []byte) unix.Errno
}

var probes = []probed{
	{"getppid", 1.10, 1.10, 1000, func(int, []byte) unix.Errno {
		_, _, errno := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
		return errno
	}},
	{"fstat", 1.10, 1.10, 300, func(fd int, buf []byte) unix.Errno {
		_, _, errno := unix.RawSyscall(unix.SYS_FSTAT, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), 0)
		return errno
	}},
	{"read of 1 byte", 1.80, 0, 300, func(fd int, buf []byte) unix.Errno {
		_, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), 1, 0, 0, 0)
		return errno
	}},
	{"write of 64 KiB", 1.05, 1.05, 4, func(fd int, buf []byte) unix.Errno {
		_, _, errno := unix.RawSyscall6(unix.SYS_PWRITE64, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), 0, 0, 0)
		return errno
	}},
}

// A trace costs processes that it is not about next to nothing, and those that it is about
// little: it is at the functions of calls that do I/O, and not where all calls of the host come by.
func TestBystander(t *testing.T) {
	if lab.Need(t).Lane == "native" {
		lab.Need(t, lab.Root, lab.FS("ext4"))
	} else {
		needTrace(t, lab.NoSystemd, lab.FS("ext4"))
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	file := filepath.Join(disk.Dir, "f")
	fentry := hasFentry() == nil
	without, meanwhile, traced, atAll := newFigures(), newFigures(), newFigures(), newFigures()
	var over error
	// The shortest of all rounds counts: who else has the processor costs time in some of them.
	for round := 1; ; round++ {
		without.measure(t, file)
		stop := emptyPrograms(t)
		atAll.measure(t, file)
		stop()
		began := time.Now()
		trace := startTrace(t, "cgroup:/"+g.name)
		attached := time.Since(began)
		everyCall := atEveryCall(t, trace)
		meanwhile.measure(t, file)
		meanwhile.measure(t, file) // as often as without
		began = time.Now()
		r := trace.end(t)
		t.Logf("attached in %s, ended in %s; lost %v, missing %v", attached.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), r.Lost, r.Missing)
		without.measure(t, file)
		dear := slices.ContainsFunc(r.Missing, func(m struct{ Hook, Reason string }) bool { return m.Hook == "fentry, fexit of system calls" })
		if dear != everyCall {
			t.Errorf("a program is at every call of the host: %v; missing: %v", everyCall, r.Missing)
		}
		if everyCall && fentry {
			t.Fatal("a program is at every call of the host, where functions take programs")
		}
		own := startTrace(t, fmt.Sprintf("pid:%d", os.Getpid()))
		traced.measure(t, file)
		traced.measure(t, file)
		own.end(t)
		over = errors.Join(meanwhile.over(without, "another process", func(p probed) float64 { return p.most }),
			traced.over(without, "this process", func(p probed) float64 { return p.target }))
		if !fentry || over == nil || round == 3 {
			break
		}
	}
	if without["getppid"]*1.1 > atAll["getppid"] {
		lab.Measures(t)
		t.Errorf("getppid: %.0f ns with programs at raw_syscalls, and %.0f ns without: the test would not see them", atAll["getppid"], without["getppid"])
	}
	for _, p := range probes {
		t.Logf("%-15s %7.0f ns; during a trace of another process %7.0f ns: %.3f; of this process %.3f; with empty programs at raw_syscalls %.3f", p.name,
			without[p.name], meanwhile[p.name], meanwhile[p.name]/without[p.name], traced[p.name]/without[p.name], atAll[p.name]/without[p.name])
	}
	if fentry && over != nil {
		lab.Measures(t)
		t.Error(over)
	}
}

// over says which calls take too long during a trace.
func (f figures) over(without figures, of string, most func(probed) float64) error {
	var errs []error
	for _, p := range probes {
		if ratio := f[p.name] / without[p.name]; most(p) > 0 && ratio > most(p) {
			errs = append(errs, fmt.Errorf("%s takes %.2f times as long during a trace of %s, want %.2f at most", p.name, ratio, of, most(p)))
		}
	}
	return errors.Join(errs...)
}

// emptyPrograms puts programs that do nothing where each system call of the host comes by: what
// the test would see, if a trace were there.
func emptyPrograms(t *testing.T) (stop func()) {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close() // the links hold it
	var links []link.Link
	for _, name := range []string{"sys_enter", "sys_exit"} {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: program})
		if err != nil {
			t.Fatal(err)
		}
		links = append(links, l)
	}
	return func() {
		for _, l := range links {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// figures are the shortest that a call took, ns.
type figures map[string]float64

func newFigures() figures {
	f := figures{}
	for _, p := range probes {
		f[p.name] = math.MaxFloat64
	}
	return f
}

// measure does each call some thousand times, without Go's scheduler.
func (f figures) measure(t *testing.T, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, buf := int(file.Fd()), make([]byte, 64<<10)
	if _, err := file.WriteAt(buf, 0); err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	batches := 400
	if lab.Here(t).Lane == "qemu" { // where each takes longer, and is as long as the others
		batches = 150
	}
	for range batches {
		for _, p := range probes {
			began := time.Now()
			for range p.batch {
				if errno := p.call(fd, buf); errno != 0 {
					t.Fatalf("%s: %v", p.name, errno)
				}
			}
			f[p.name] = min(f[p.name], float64(time.Since(began).Nanoseconds())/float64(p.batch))
		}
	}
}

// atEveryCall reports whether a trace has a program where each system call of the host comes
// by: at raw_syscalls.
func atEveryCall(t *testing.T, trace *tracing) bool {
	t.Helper()
	types, err := btf.LoadKernelSpec()
	if err != nil {
		t.Fatal(err)
	}
	programs, _, links := held(t, helperOf(t, trace.cmd.Process.Pid))
	if len(links) == 0 {
		t.Fatalf("the trace has no links, but programs %v", programs)
	}
	for _, id := range links {
		l, err := link.NewFromID(id)
		if err != nil {
			t.Fatal(err)
		}
		at := placeOf(t, types, l)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if strings.Contains(at, "sys_enter") || strings.Contains(at, "sys_exit") || strings.HasPrefix(at, "enter") || strings.HasPrefix(at, "leave") {
			return true
		}
	}
	return false
}

// placeOf is what a link is at: the name of a function or a tracepoint, or of the program
// where the kernel does not say.
func placeOf(t *testing.T, types *btf.Spec, l link.Link) string {
	t.Helper()
	info, err := l.Info()
	if err != nil {
		t.Fatal(err)
	}
	if at := info.Tracing(); at != nil && at.TargetBtfId != 0 {
		of, err := types.TypeByID(at.TargetBtfId)
		if err != nil {
			t.Fatal(err)
		}
		return of.TypeName()
	}
	program, err := ebpf.NewProgramFromID(info.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	p, err := program.Info()
	if err != nil {
		t.Fatal(err)
	}
	return p.Name
}
