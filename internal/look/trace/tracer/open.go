package tracer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/trace"
)

// A Tracer is a running trace. What it has loaded is gone when it is closed or its process
// ends.
type Tracer struct {
	Missing []trace.Missing
	Began   time.Time

	spec    *ebpf.CollectionSpec
	cache   *btf.Cache
	types   *btf.Spec // the kernel's
	all     *ebpf.Collection
	maps    map[string]*ebpf.Map
	links   []link.Link
	slows   *ringbuf.Reader
	instead []string // variables to be set
	absent  []string // programs that could not be had
	tables  map[btf.Type]*tables
	typed   bool // programs go on only to those of functions of the same type

	preemptible  bool // the kernel preempts programs of tracepoints
	countsMissed bool // it counts events that programs were not started for: 5.12 (9ed9e9ba2337)
}

// Open starts a trace. If tracing is not available, the error is a *bpf.Unavailable.
func Open(o trace.Options) (_ *Tracer, err error) {
	if o, err = o.Resolved(); err != nil {
		return nil, err
	}
	if err := trace.Hindrance(); err != nil {
		return nil, err
	}
	types := btf.NewCache() // of the kernel's types: some 10 MB to be read
	t := &Tracer{cache: types, tables: map[btf.Type]*tables{}}
	if t.types, err = types.Kernel(); err != nil {
		return nil, refused(err)
	}
	if t.spec, err = loadTrace(); err != nil {
		return nil, refused(err)
	}
	if err := t.configure(o); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.Close())
		}
	}()
	if err := t.loadMaps(); err != nil {
		return nil, refused(err)
	}
	requests := t.uringHooks(o.Kinds)
	for _, h := range append(hooks(o.Kinds, len(requests) > 0), requests...) {
		if err := t.attach(h); err != nil {
			return nil, err
		}
	}
	if t.slows, err = ringbuf.NewReader(t.all.Maps[traceMapSlows]); err != nil {
		return nil, refused(err)
	}
	t.Began = time.Now()
	return t, t.start()
}

// start makes the programs begin. It writes the variable through its map, because memory shared
// with the kernel is not always available on 5.10.
func (t *Tracer) start() error {
	bss := t.maps[".bss"]
	value := make([]byte, bss.ValueSize())
	for _, name := range append(t.instead, traceVarStarted) {
		value[t.spec.Variables[name].Offset] = 1
	}
	if err := bss.Put(uint32(0), value); err != nil {
		return fmt.Errorf("start the trace: %w", err)
	}
	return nil
}

// memlock is enough for all maps, bytes.
const memlock = 256 << 20

// loadMaps makes the maps, with all settings in them.
func (t *Tracer) loadMaps() error {
	only := t.spec.Copy()
	only.Programs = nil
	all, err := ebpf.NewCollection(only)
	if errors.Is(err, unix.EPERM) && bpf.RaiseMemlock(memlock) {
		all, err = ebpf.NewCollection(only)
	}
	if err != nil {
		return err
	}
	t.all, t.maps = all, all.Maps
	return nil
}

// Filters of bpf/trace.h.
const (
	filterAll uint32 = iota
	filterCgroup
	filterProcess
)

// configure writes the settings into the object.
func (t *Tracer) configure(o trace.Options) error {
	if len(systemCalls()) == 0 {
		return unavailable("weir does not know the system calls of "+runtime.GOARCH, "it traces on amd64 and arm64")
	}
	places, err := readPlaces("/")
	if errors.Is(err, errHidden) {
		return unavailable(err.Error(), "run weir as root, and set kernel.kptr_restrict to 0 or 1; a systemd unit must not have ProtectKernelLogs= or ProtectKernelTunables=, as with contrib/weird-metrics.service.d/page-trace.conf")
	}
	if err != nil {
		return err
	}
	release, err := kernel.New("/").Release()
	if err != nil {
		return err
	}
	t.preemptible, t.countsMissed = !release.Before(7, 0), !release.Before(5, 12)
	settings := map[string]any{
		traceVarCalls: callsOf(o.Kinds), traceVarOpcodes: opcodesOf(o.Kinds), traceVarKinds: kindsMask(o.Kinds), traceVarPlaces: places, traceVarOwnTgid: uint32(os.Getpid()), traceVarAskerTgid: uint32(o.Asker), traceVarSlower: uint64(o.Slower),
		traceVarByFile: o.Files, traceVarKnownTask: features.HaveProgramHelper(ebpf.RawTracepoint, asm.FnGetCurrentTaskBtf) == nil,
		traceVarPreemptible: t.preemptible, traceVarInterruptible: preempts(),
	}
	for name, of := range map[string]struct{ tracepoint, structure string }{
		traceVarBioArgument: {"block_bio_queue", "bio"}, traceVarRqArgument: {"block_rq_issue", "request"},
	} {
		at, _ := t.argument(of.tracepoint, of.structure)
		settings[name] = uint32(at)
	}
	_, settings[traceVarCqeArgument] = t.argument("io_uring_complete", "io_uring_cqe")
	switch {
	case o.Filter != nil:
		settings[traceVarFilter], settings[traceVarFilterId] = filterCgroup, o.Filter.ID
		settings[traceVarFilterLevel], settings[traceVarFilterV1] = o.Filter.Level, o.Filter.V1
	case o.PID != 0:
		settings[traceVarFilter], settings[traceVarFilterId] = filterProcess, uint64(o.PID)
	default:
		settings[traceVarFilter] = filterAll
	}
	for name, value := range settings {
		if err := t.spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// preempts reports whether the kernel can preempt what it does for a task, and so a program at
// one of its functions. A kernel that was built for more than one way says so too
// (PREEMPT_DYNAMIC).
func preempts() bool {
	var u unix.Utsname
	return unix.Uname(&u) != nil || strings.Contains(unix.ByteSliceToString(u.Version[:]), "PREEMPT")
}

func kindsMask(kinds []trace.Kind) (mask uint32) {
	for _, k := range kinds {
		mask |= 1 << k
	}
	return mask
}

// argument returns the position of a structure among a tracepoint's arguments, not counting the
// programs' own context.
func (t *Tracer) argument(tracepoint, structure string) (place int, ok bool) {
	var d *btf.Typedef
	if err := t.types.TypeByName("btf_trace_"+tracepoint, &d); err != nil {
		return 0, false
	}
	pointer, _ := d.Type.(*btf.Pointer)
	if pointer == nil {
		return 0, false
	}
	proto, _ := pointer.Target.(*btf.FuncProto)
	if proto == nil {
		return 0, false
	}
	for i, p := range proto.Params {
		if to, ok := p.Type.(*btf.Pointer); ok && to.Target.TypeName() == structure {
			return i - 1, true
		}
	}
	return 0, false
}

func (t *Tracer) hasTracepoint(name string) bool {
	var d *btf.Typedef
	return t.types.TypeByName("btf_trace_"+name, &d) == nil
}

// Close ends the trace.
func (t *Tracer) Close() error {
	errs := []error{t.detach(0), t.closeTables()}
	if t.slows != nil {
		errs = append(errs, t.slows.Close())
	}
	if t.all != nil {
		t.all.Close()
	}
	return errors.Join(errs...)
}
