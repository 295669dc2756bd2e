package tracer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/weir-io/weir/internal/look/trace"
)

// A hook is a place in the kernel that a program of bpf/trace.bpf.c is attached to. Each is
// tried separately: missing ones are reported, and only some are indispensable.
type hook struct {
	name     string   // for people
	programs []string // of the object, all of them or none
	// parts are attached with it, all of them or none.
	parts []hook
	// step is what the programs go on to; nil: nothing.
	step *step
	// functions are the names that the hooked function has had; empty: the programs name
	// their tracepoints themselves.
	functions []string
	// optional is a hook at functions that some kernels do not have, because they do not have the
	// call either.
	optional bool
	// unfit is why the kernel's hook cannot be used, if that is known in advance.
	unfit string
	// before are programs that are tried first, where programs can be preempted.
	before []string
	// fallback is attached instead of this hook where it cannot be had.
	fallback *hook
	// costs says what is worse with the fallback, for people; empty: nothing.
	costs string
	// instead is a variable of the object that makes the other programs compensate for this
	// hook.
	instead string
	// without says what weir cannot show without it; empty: there is no trace at all.
	without string
}

// hooks returns the hooks for a trace of some kinds, with or without requests of io_uring.
func hooks(kinds []trace.Kind, uring bool) []hook {
	all := []hook{
		{name: trace.CallsHook, parts: callHooks(kinds, uring),
			costs: "each system call on this host, of any process, takes about 60 ns longer while weir traces",
			fallback: &hook{name: "raw_syscalls:sys_enter, sys_exit", programs: []string{traceProgEnter, traceProgLeave},
				before: []string{traceProgEnterEvent, traceProgLeaveEvent}}},
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

// attach loads and attaches a hook's programs, or its fallback's, and notes what is missing.
func (t *Tracer) attach(h hook) error {
	err := t.attachAsIs(h)
	if err == nil {
		return nil
	}
	if h.fallback != nil {
		other := t.attachAsIs(*h.fallback)
		if other == nil {
			if h.costs != "" {
				t.Missing = append(t.Missing, trace.Missing{Hook: h.name, Reason: reason(err), Without: h.costs})
			}
			return nil
		}
		err = fmt.Errorf("%w; %s: %w", err, h.fallback.name, other)
	}
	if h.without == "" {
		return refused(fmt.Errorf("%s: %w", h.name, err))
	}
	t.Missing = append(t.Missing, trace.Missing{Hook: h.name, Reason: reason(err), Without: h.without})
	t.absent = append(t.absent, h.programs...)
	if h.instead != "" {
		t.instead = append(t.instead, h.instead)
	}
	return nil
}

// attachAsIs attaches a hook without its fallback.
func (t *Tracer) attachAsIs(h hook) error {
	if h.unfit != "" {
		return errors.New(h.unfit)
	}
	if t.preemptible && len(h.before) > 0 {
		first := h
		first.programs = h.before
		if t.attachAll(first) == nil {
			return nil
		}
	}
	return t.attachAll(h)
}

// attachAll attaches all programs of a hook and its parts, or none of them.
func (t *Tracer) attachAll(h hook) error {
	already := len(t.links)
	for _, part := range append([]hook{h}, h.parts...) {
		if part.optional && t.function(part.functions) == "" {
			continue
		}
		for _, name := range part.programs {
			l, err := t.attachOne(name, part)
			if err != nil {
				err = errors.Join(err, t.detach(already))
				if h.parts != nil {
					err = errors.Join(err, t.closeTables()) // its programs alone go on to others
				}
				return err
			}
			t.links = append(t.links, l)
		}
	}
	return nil
}

// detach closes all links but the first ones.
func (t *Tracer) detach(keep int) error {
	var errs []error
	for _, l := range t.links[keep:] {
		errs = append(errs, l.Close())
	}
	t.links = t.links[:keep]
	return errors.Join(errs...)
}

// attachOne attaches a program of a hook to the first of its functions that the kernel has, or to
// the tracepoint that the program names.
func (t *Tracer) attachOne(name string, h hook) (link.Link, error) {
	function := ""
	if len(h.functions) > 0 {
		if function = t.function(h.functions); function == "" {
			return nil, fmt.Errorf("the kernel has no %s", h.functions[0])
		}
	}
	var program *ebpf.Program
	var err error
	if h.step != nil {
		program, err = t.loadOnto(name, h.step, function)
	} else {
		program, err = t.load(name, function, nil)
	}
	if err != nil {
		return nil, err
	}
	defer program.Close() // the link holds it
	switch spec := t.spec.Programs[name]; spec.Type {
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
		if len(t.functionsOf(name)) > 0 {
			return name
		}
	}
	return ""
}

// load loads one program with the existing maps: for a function, or, where that is empty, for what
// the program names.
func (t *Tracer) load(name, function string, goOn *tables) (*ebpf.Program, error) {
	program := t.spec.Programs[name].Copy()
	if function != "" && program.Type == ebpf.Tracing {
		program.AttachTo = function
	}
	only := &ebpf.CollectionSpec{Maps: t.spec.Maps, Programs: map[string]*ebpf.ProgramSpec{name: program}, Types: t.spec.Types, ByteOrder: t.spec.ByteOrder}
	loaded, err := ebpf.NewCollectionWithOptions(only, ebpf.CollectionOptions{MapReplacements: goOn.over(t.maps), Cache: t.cache})
	if err != nil {
		return nil, err
	}
	defer loaded.Close()
	return loaded.DetachProgram(name), nil
}
