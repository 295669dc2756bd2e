//go:build amd64 || arm64

package trace

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCallsOf(t *testing.T) {
	const descriptor = 3 << callFDShift
	for _, c := range []struct {
		number     int
		with, less []Kind // it is taken with the first, and not with the second
		want       uint8
	}{
		{unix.SYS_WRITE, []Kind{Write}, []Kind{Read, Fsync, Fault}, uint8(Write)},
		{unix.SYS_PREADV2, []Kind{Fsync, Read}, []Kind{Write}, uint8(Read)},
		{unix.SYS_FDATASYNC, []Kind{Fsync}, nil, uint8(Fsync)},
		{unix.SYS_SYNC, []Kind{Fsync}, []Kind{Write, Read}, uint8(Fsync) | callAnyFile},
		{unix.SYS_COPY_FILE_RANGE, []Kind{Write}, []Kind{Read}, uint8(Write) | 2<<callFDShift},
		{unix.SYS_SENDFILE, []Kind{Write}, []Kind{Fsync}, uint8(Write) | callSendfile},
		{unix.SYS_SENDFILE, []Kind{Read}, []Kind{Fault}, uint8(Write) | callSendfile},
	} {
		if got := callsOf(c.with)[c.number]; got != c.want|callTaken {
			t.Errorf("call %d with %v: %#x, want %#x", c.number, c.with, got, c.want|callTaken)
		}
		if got := callsOf(c.less)[c.number]; got != 0 {
			t.Errorf("call %d with %v: %#x, want none", c.number, c.less, got)
		}
	}
	all := callsOf([]Kind{Write, Read, Fsync, Fault})
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
