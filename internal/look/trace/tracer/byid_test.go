package tracer

import (
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The kernel's numbers, and where the type's number is among what it is told.
func TestLoadByID(t *testing.T) {
	if ebpf.AttachTraceFEntry != unix.BPF_TRACE_FENTRY || ebpf.AttachTraceFExit != unix.BPF_TRACE_FEXIT {
		t.Errorf("the library's numbers of entries and exits, %d and %d, are not the kernel's", ebpf.AttachTraceFEntry, ebpf.AttachTraceFExit)
	}
	var load progLoad
	for name, at := range map[string][2]uintptr{"name": {unsafe.Offsetof(load.name), 48}, "attach type": {unsafe.Offsetof(load.attachType), 68}, "type": {unsafe.Offsetof(load.attachTo), 108}} {
		if at[0] != at[1] {
			t.Errorf("%s is at %d, want %d", name, at[0], at[1])
		}
	}
	if size := unsafe.Sizeof(load); size != 112 {
		t.Errorf("%d bytes", size)
	}
}
