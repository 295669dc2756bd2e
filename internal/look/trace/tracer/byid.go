package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// progLoad is what BPF_PROG_LOAD is told (include/uapi/linux/bpf.h, union bpf_attr), where an
// address has 64 bits.
type progLoad struct {
	kind, count               uint32
	instructions, license     unsafe.Pointer
	logLevel, logSize         uint32
	log                       unsafe.Pointer
	kernelVersion, flags      uint32
	name                      [16]byte
	device, attachType        uint32
	types, functionRecordSize uint32
	functions                 unsafe.Pointer
	functionCount, lineSize   uint32
	lines                     unsafe.Pointer
	lineCount, attachTo       uint32 // the latter a type's number
}

// loadByID loads a program that goes on to others, for a function by its type's number. The
// library finds functions by name alone, and some kernels' types have two functions of one name
// (6.1's __x64_sys_io_submit: pahole keeps each that has other names for its arguments).
func (t *Tracer) loadByID(name string, f *btf.Func, all *tables) (*ebpf.Program, error) {
	id, err := t.types.TypeID(f)
	if err != nil {
		return nil, fmt.Errorf("find the type of %s: %w", f.Name, err)
	}
	spec := t.spec.Programs[name].Copy()
	for table, m := range all.maps {
		if err := spec.Instructions.AssociateMap(table, m); err != nil && !errors.Is(err, asm.ErrUnreferencedSymbol) {
			return nil, fmt.Errorf("load %s: %w", name, err)
		}
	}
	var code bytes.Buffer
	if err := spec.Instructions.Marshal(&code, spec.ByteOrder); err != nil {
		return nil, fmt.Errorf("load %s: %w", name, err)
	}
	license := append([]byte(spec.License), 0)
	load := progLoad{kind: unix.BPF_PROG_TYPE_TRACING, count: uint32(code.Len() / asm.InstructionSize), attachType: uint32(spec.AttachType), attachTo: uint32(id),
		instructions: unsafe.Pointer(unsafe.SliceData(code.Bytes())), license: unsafe.Pointer(unsafe.SliceData(license))}
	copy(load.name[:len(load.name)-1], name)
	fd, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_LOAD, uintptr(unsafe.Pointer(&load)), unsafe.Sizeof(load))
	runtime.KeepAlive(&load) // and what it points to
	runtime.KeepAlive(all)
	if errno != 0 {
		return nil, fmt.Errorf("load %s for %s, type %d: %w", name, f.Name, id, errno)
	}
	return ebpf.NewProgramFromFD(int(fd))
}
