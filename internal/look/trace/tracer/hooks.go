package tracer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-io/weir/internal/look/trace"
)

// A hook is a place in the kernel that a program of bpf/trace.bpf.c is attached to. Each is
// tried separately: missing ones are reported, and only some are indispensable.
type hook struct {
	name     string   // for people
	programs []string // of the object, all of them or none
	// functions are the names that the hooked function has had; empty: the programs name
	// their tracepoints themselves.
	functions []string
	// unfit is why the kernel's hook cannot be used, if that is known in advance.
	unfit string
	// before are programs that are tried first, where programs can be preempted.
	before []string
	// instead of this hook where it cannot be had
	fallback *hook
	// instead is a variable of the object that makes the other programs compensate for this
	// hook.
	instead string
	// without says what weir cannot show without it; empty: there is no trace at all.
	without string
}

// hooks returns the hooks for a trace of some kinds.
func hooks(kinds []trace.Kind) []hook {
	all := []hook{
		{name: "raw_syscalls:sys_enter, sys_exit", programs: []string{traceProgEnter, traceProgLeave},
			before: []string{traceProgEnterEvent, traceProgLeaveEvent}},
		{name: "sched:sched_switch", programs: []string{traceProgSwitched}},
		{name: "sched:sched_waking", programs: []string{traceProgWaking}, without: "waits include the time that follows until a processor is free"},
		{name: "vmscan:mm_vmscan_memcg_reclaim_begin, _end", programs: []string{traceProgMemcgReclaim, traceProgMemcgReclaimed},
			before:  []string{traceProgMemcgReclaimEvent, traceProgMemcgReclaimedEvent},
			without: "memcg reclaim counts as CPU, except the time it sleeps"},
		{name: "vmscan:mm_vmscan_direct_reclaim_begin, _end", programs: []string{traceProgDirectReclaim, traceProgDirectReclaimed},
			before:  []string{traceProgDirectReclaimEvent, traceProgDirectReclaimedEvent},
			without: "direct reclaim counts as CPU, except the time it sleeps"},
		{name: "block:block_bio_queue, block_rq_complete, block_bio_complete", programs: []string{traceProgBioQueued, traceProgRqCompleted, traceProgBioCompleted},
			without: "waits for I/O are not split; they count as I/O of others"},
		{name: "block:block_rq_issue", programs: []string{traceProgRqIssued}, without: "time in the block layer's queue counts as device time"},
		// The throttle has no tracepoint, and those of the block layer come after it. Its entry is
		// blk_throtl_bio until 5.13 (a7b36ee6ba29 made that an inline check before it).
		{name: "fentry of the block throttle", programs: []string{traceProgThrottled}, functions: []string{"__blk_throtl_bio", "blk_throtl_bio"},
			instead: traceVarHeldUnseen, without: "weir infers a wait in blk-throttle from what the throttle last released for the same group and disk; for background I/O it is not known",
			fallback: &hook{name: "kprobe of the block throttle", programs: []string{traceProgThrottledKprobe},
				functions: []string{"__blk_throtl_bio", "blk_throtl_bio"}}},
	}
	if slices.Contains(kinds, trace.Fault) {
		all = append(all, hook{name: "fentry, fexit of page faults", functions: []string{"filemap_fault"},
			programs: []string{traceProgReadFault, traceProgReadFaulted}, without: "page faults that read pages of mapped files are not traced"},
			hook{name: "fentry, fexit of first writes to pages", functions: []string{"do_page_mkwrite"},
				programs: []string{traceProgWriteFault, traceProgWriteFaulted}, without: "page faults of writes to mapped files are not traced"})
	}
	return all
}

// attach loads and attaches a hook's programs, or its fallback's.
func (t *Tracer) attach(h hook) error {
	if t.preemptible && h.unfit == "" && len(h.before) > 0 {
		first := h
		first.programs = h.before
		if t.attachAll(first) == nil {
			return nil
		}
	}
	err := t.attachAll(h)
	if err != nil && h.fallback != nil {
		if other := t.attachAll(*h.fallback); other != nil {
			return fmt.Errorf("%w; %s: %w", err, h.fallback.name, other)
		}
		return nil
	}
	return err
}

func (t *Tracer) attachAll(h hook) error {
	if h.unfit != "" {
		return errors.New(h.unfit)
	}
	var links []link.Link
	for _, name := range h.programs {
		l, err := t.attachOne(name, h.functions)
		if err != nil {
			for _, l := range links {
				err = errors.Join(err, l.Close())
			}
			return err
		}
		links = append(links, l)
	}
	t.links = append(t.links, links...)
	return nil
}

// attachOne attaches a program to the first of the functions that the kernel has, or to the
// tracepoint that the program names.
func (t *Tracer) attachOne(name string, functions []string) (link.Link, error) {
	spec := t.spec.Programs[name].Copy()
	function := ""
	if len(functions) > 0 {
		if function = t.function(functions); function == "" {
			return nil, fmt.Errorf("the kernel has no %s", functions[0])
		}
		if spec.Type == ebpf.Tracing {
			spec.AttachTo = function
		}
	}
	program, err := t.load(name, spec)
	if err != nil {
		return nil, err
	}
	defer program.Close() // the link holds it
	switch spec.Type {
	case ebpf.Kprobe:
		return link.Kprobe(function, program, nil)
	case ebpf.TracePoint:
		system, event, _ := strings.Cut(spec.AttachTo, "/")
		return link.Tracepoint(system, event, program, nil)
	}
	return link.AttachTracing(link.TracingOptions{Program: program})
}

// function returns the first of some functions that the kernel has.
func (t *Tracer) function(names []string) string {
	for _, name := range names {
		var f *btf.Func
		if t.types.TypeByName(name, &f) == nil {
			return name
		}
	}
	return ""
}

// load loads one program with the existing maps.
func (t *Tracer) load(name string, program *ebpf.ProgramSpec) (*ebpf.Program, error) {
	one := t.spec.Copy()
	one.Programs = map[string]*ebpf.ProgramSpec{name: program}
	loaded, err := ebpf.NewCollectionWithOptions(one, ebpf.CollectionOptions{MapReplacements: t.maps, Cache: t.cache})
	if err != nil {
		return nil, err
	}
	defer loaded.Close()
	return loaded.DetachProgram(name), nil
}
