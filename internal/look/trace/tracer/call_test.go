//go:build amd64 || arm64

package tracer

import (
	"testing"

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
