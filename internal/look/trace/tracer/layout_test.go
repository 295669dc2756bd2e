package tracer

import (
	"reflect"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/weir-io/weir/internal/look/trace"
)

// The object's own types say what its maps hold.
func TestLayout(t *testing.T) {
	spec, err := loadTrace()
	if err != nil {
		t.Fatal(err)
	}
	for name, mirror := range map[string]any{
		"cell": cell{}, "behind": behind{}, "lost": lost{}, "unseen": unseen{}, "reclaimed": reclaimed{},
		"file_key": fileKey{}, "file_sum": fileSum{}, "place": place{},
	} {
		var s *btf.Struct
		if err := spec.Types.TypeByName(name, &s); err != nil {
			t.Errorf("struct %s: %v", name, err)
			continue
		}
		same(t, s, reflect.TypeOf(mirror))
	}
}

// The two processes of weir that a trace leaves out are set before it is loaded.
func TestTheAskerIsASetting(t *testing.T) {
	spec, err := loadTrace()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{traceVarOwnTgid, traceVarAskerTgid} {
		v := spec.Variables[name]
		if v == nil || !v.Constant() {
			t.Fatalf("%s: %v", name, v)
		}
		if err := v.Set(uint32(4711)); err != nil {
			t.Error(err)
		}
	}
}

// same asserts that fields are where the object has them.
func same(t *testing.T, s *btf.Struct, mirror reflect.Type) {
	t.Helper()
	if uintptr(s.Size) != mirror.Size() || len(s.Members) != mirror.NumField() {
		t.Errorf("struct %s: %d bytes with %d fields, the mirror %d with %d", s.Name, s.Size, len(s.Members), mirror.Size(), mirror.NumField())
		return
	}
	for i, m := range s.Members {
		f := mirror.Field(i)
		size, err := btf.Sizeof(m.Type)
		if err != nil {
			t.Errorf("struct %s, %s: %v", s.Name, m.Name, err)
		}
		if uintptr(m.Offset.Bytes()) != f.Offset || uintptr(size) != f.Type.Size() {
			t.Errorf("struct %s, %s: %d bytes at %d, the mirror's %s %d at %d", s.Name, m.Name, size, m.Offset.Bytes(), f.Name, f.Type.Size(), f.Offset)
		}
	}
}

// The type of what goes through the ring buffer is not in the object; its size is.
func TestSizeOfASlowOperation(t *testing.T) {
	spec, err := loadTrace()
	if err != nil {
		t.Fatal(err)
	}
	size, reserves := int64(0), 0
	for _, i := range spec.Programs[traceProgCallEntered].Instructions {
		if i.OpCode.Class().IsALU() && i.OpCode.ALUOp() == asm.Mov && i.OpCode.Source() == asm.ImmSource && i.Dst == asm.R2 {
			size = i.Constant
		}
		if i.IsBuiltinCall() && asm.BuiltinFunc(i.Constant) == asm.FnRingbufReserve {
			reserves++
			if want := reflect.TypeFor[slowEvent]().Size(); size != int64(want) {
				t.Errorf("the kernel side sends %d bytes, the mirror has %d", size, want)
			}
		}
	}
	if reserves == 0 {
		t.Error("no slow operation is sent")
	}
}

func TestMaps(t *testing.T) {
	spec, err := loadTrace()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct {
		entries uint32
		value   uintptr
	}{
		traceMapCells:    {uint32(trace.Kinds) * trace.Buckets, reflect.TypeFor[cell]().Size()},
		traceMapBehinds:  {2, reflect.TypeFor[behind]().Size()},
		traceMapLosses:   {1, reflect.TypeFor[lost]().Size()},
		traceMapUnseens:  {uint32(trace.Kinds), reflect.TypeFor[unseen]().Size()},
		traceMapReclaims: {2, reflect.TypeFor[reclaimed]().Size()},
	} {
		m := spec.Maps[name]
		if m.Type != ebpf.PerCPUArray || m.MaxEntries != want.entries || uintptr(m.ValueSize) != want.value {
			t.Errorf("map %s: %s with %d of %d bytes, want %d of %d", name, m.Type, m.MaxEntries, m.ValueSize, want.entries, want.value)
		}
	}
	for name, want := range map[string]uintptr{
		traceVarCalls: callsMax, traceVarOpcodes: opcodesMax, traceVarPlaces: placesMax * reflect.TypeFor[place]().Size(),
	} {
		if got := uintptr(spec.Variables[name].Size()); got != want {
			t.Errorf("%s: %d bytes, want %d", name, got, want)
		}
	}
	// What a trace can take of the host's memory, whatever the host does.
	const most = 32 << 20
	sum := uint64(0)
	for _, m := range spec.Maps {
		if m.Type == ebpf.RingBuf {
			sum += uint64(m.MaxEntries)
		} else {
			sum += uint64(m.MaxEntries) * uint64(m.KeySize+m.ValueSize)
		}
	}
	if sum > most {
		t.Errorf("the maps can hold %d bytes, want %d at most", sum, most)
	}
}

// A helper that 5.10 does not have (bpf_task_pt_regs, dd6e10fbd9fb) is in programs only that
// no kernel before 7.0 loads.
func TestHelpersOfLaterKernels(t *testing.T) {
	spec, err := loadTrace()
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range spec.Programs {
		for _, i := range p.Instructions {
			if i.IsBuiltinCall() && asm.BuiltinFunc(i.Constant) == asm.FnTaskPtRegs && p.Type != ebpf.TracePoint {
				t.Errorf("program %s asks for registers by a helper that 5.10 does not have", name)
				break
			}
		}
	}
}
