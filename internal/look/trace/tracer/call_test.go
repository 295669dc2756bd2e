//go:build amd64 || arm64

package tracer

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/trace"
)

func TestCallsOf(t *testing.T) {
	const descriptor = 3 << callFDShift
	for _, c := range []struct {
		number     int
		with, less []trace.Kind // it is taken with the first, and not with the second
		want       uint8
	}{
		{unix.SYS_WRITE, []trace.Kind{trace.Write}, []trace.Kind{trace.Read, trace.Fsync, trace.Fault}, uint8(trace.Write)},
		{unix.SYS_PREADV2, []trace.Kind{trace.Fsync, trace.Read}, []trace.Kind{trace.Write}, uint8(trace.Read)},
		{unix.SYS_FDATASYNC, []trace.Kind{trace.Fsync}, nil, uint8(trace.Fsync)},
		{unix.SYS_SYNC, []trace.Kind{trace.Fsync}, []trace.Kind{trace.Write, trace.Read}, uint8(trace.Fsync) | callAnyFile},
		{unix.SYS_COPY_FILE_RANGE, []trace.Kind{trace.Write}, []trace.Kind{trace.Read}, uint8(trace.Write) | 2<<callFDShift},
		{unix.SYS_SENDFILE, []trace.Kind{trace.Write}, []trace.Kind{trace.Fsync}, uint8(trace.Write) | callSendfile},
		{unix.SYS_SENDFILE, []trace.Kind{trace.Read}, []trace.Kind{trace.Fault}, uint8(trace.Write) | callSendfile},
	} {
		if got := callsOf(c.with)[c.number]; got != c.want|callTaken {
			t.Errorf("call %d with %v: %#x, want %#x", c.number, c.with, got, c.want|callTaken)
		}
		if got := callsOf(c.less)[c.number]; got != 0 {
			t.Errorf("call %d with %v: %#x, want none", c.number, c.less, got)
		}
	}
	all := callsOf([]trace.Kind{trace.Write, trace.Read, trace.Fsync, trace.Fault})
	taken := 0
	for number, bits := range all {
		if bits == 0 {
			continue
		}
		taken++
		if _, ok := systemCalls()[number]; !ok || bits&callTaken == 0 || bits&descriptor == descriptor {
			t.Errorf("call %d is %#x", number, bits)
		}
	}
	if taken != len(systemCalls()) {
		t.Errorf("%d of %d calls are taken", taken, len(systemCalls()))
	}
}

// Each call that is traced has a hook at its own function, with a program where it begins and one
// where it ends.
func TestCallHooks(t *testing.T) {
	spec, err := loadTrace()
	if err != nil {
		t.Fatal(err)
	}
	kinds := []trace.Kind{trace.Write, trace.Read, trace.Fsync}
	all := callHooks(kinds, true)
	if want := len(systemCalls()) + 1; len(all) != want {
		t.Errorf("%d hooks, want %d", len(all), want)
	}
	seen := map[string]bool{}
	for _, h := range all {
		name := h.functions[0]
		if seen[name] {
			t.Errorf("%s has two hooks", name)
		}
		seen[name] = true
		if h.optional != strings.HasPrefix(name, callPrefixes[runtime.GOARCH]+"io_") && !strings.HasSuffix(name, "io_uring_enter") {
			t.Errorf("%s: optional %v", name, h.optional)
		}
		// A call that begins before the other program is there would seem to have no end.
		for _, programs := range [][]string{h.programs, h.step.programs} {
			var types []ebpf.AttachType
			for _, p := range programs {
				types = append(types, spec.Programs[p].AttachType)
			}
			if !slices.Equal(types, []ebpf.AttachType{ebpf.AttachTraceFExit, ebpf.AttachTraceFEntry}) {
				t.Errorf("%s: programs %v", name, programs)
			}
		}
	}
	prefix := callPrefixes[runtime.GOARCH]
	for call, programs := range map[string][]string{
		"write": {traceProgToCallLeft, traceProgToCallEntered}, "sendfile64": {traceProgToCallLeft, traceProgToCallEntered},
		"io_submit": {traceProgToSubmitLeft, traceProgToSubmitEntered}, "io_pgetevents": {traceProgToReapLeft, traceProgToReapEntered},
		"io_uring_enter": {traceProgToUringLeft, traceProgToUringEntered},
	} {
		if !slices.ContainsFunc(all, func(h hook) bool { return h.functions[0] == prefix+call && slices.Equal(h.programs, programs) }) {
			t.Errorf("%s has no hook with %v", call, programs)
		}
	}
	if !slices.ContainsFunc(all, func(h hook) bool { return slices.Equal(h.functions, []string{prefix + "sync", "__do_sys_sync"}) }) {
		t.Error("sync has no hook at its other name")
	}
	if some := callHooks([]trace.Kind{trace.Fsync}, false); slices.ContainsFunc(some, func(h hook) bool {
		return h.functions[0] == prefix+"write" || h.functions[0] == prefix+"io_uring_enter"
	}) {
		t.Error("a trace of fsyncs is at other calls")
	}
}
