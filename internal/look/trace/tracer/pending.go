package tracer

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"github.com/weir-io/weir/internal/look/trace"
)

// pendingMost bounds the unfinished operations that are listed, and pendingMin is how long one
// must have run to be listed.
const (
	pendingMost = 100
	pendingMin  = 100 * time.Millisecond
)

// Pending lists operations that have not ended, the longest first: a write that has waited for
// seconds when the trace ends is what the user is looking for.
func (t *Tracer) Pending() ([]trace.Slow, error) {
	all, err := valuesOf[uint32, operation](t.maps[traceMapOps])
	if err != nil {
		return nil, err
	}
	away, err := valuesOf[uint64, operation](t.maps[traceMapRequests])
	if err != nil {
		return nil, err
	}
	now := monotonic()
	origin := now - uint64(time.Since(t.Began))
	var found []trace.Slow
	add := func(o operation, parts trace.Split) {
		if o.Begin == 0 || o.Begin > now || now-o.Begin < uint64(pendingMin) || o.Asked != 0 && o.OnDisk == 0 {
			return
		}
		if tgid, comm, ok := threadOf(o.TID); ok {
			e := slowEvent{Began: o.Begin, Took: now - o.Begin, TID: o.TID, TGID: tgid, Kind: uint32(o.Kind), Parts: parts}
			copy(e.Comm[:], comm)
			found = append(found, e.slow("", origin))
		}
	}
	for _, o := range all {
		if o.Ended == 0 || o.Off != 0 { // what is stopped on its way back has not returned
			add(o, o.soFar(now))
		}
	}
	for _, o := range away {
		if o.Asked != askedWorker { // it is the worker's
			add(o, o.soFarAway(now))
		}
	}
	slices.SortFunc(found, func(a, b trace.Slow) int { return cmp.Compare(b.Took, a.Took) })
	return found[:min(len(found), pendingMost)], nil
}

// valuesOf returns the values of a map.
func valuesOf[K, V any](m *ebpf.Map) ([]V, error) {
	keys, all := make([]K, m.MaxEntries()), make([]V, m.MaxEntries())
	var cursor ebpf.MapBatchCursor
	n, err := m.BatchLookup(&cursor, keys, all, nil)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	return all[:n], nil
}

// Of enum asked in bpf/trace_state.h.
const (
	askedPunted = 3
	askedWorker = 4
)

// soFarAway is soFar for a request of io_uring that no task works on: it waits for its I/O,
// whose stages cannot be told apart before it ends, or for a worker.
func (o operation) soFarAway(now uint64) trace.Split {
	s, part := o.Parts, trace.OtherIO
	if o.Asked == askedPunted {
		part = trace.Uring
	}
	if now > o.Mark {
		s[part] += now - o.Mark
	}
	return s
}

// soFar adds the time since the operation was last updated.
func (o operation) soFar(now uint64) trace.Split {
	s := o.Parts
	part := trace.CPU
	switch off := wait(o.Off) - 1; {
	case o.Reclaim != 0:
		part = trace.Part(o.Reclaim)
	case o.Off == 0:
	case off == waits:
		part = trace.RunQueue
	default:
		part = waitParts[off]
	}
	if now > o.Mark {
		s[part] += now - o.Mark
	}
	return s
}

// waitParts are the parts of unfinished waits: own I/O cannot be split then.
var waitParts = [waits]trace.Part{waitFrozen: trace.Frozen, waitMemcg: trace.MemcgReclaim, waitReclaim: trace.DirectReclaim, waitDirty: trace.DirtyThrottle,
	waitJournal: trace.Journal, waitQueue: trace.Queue, waitIO: trace.OtherIO, waitSyscall: trace.Other, waitExit: trace.Other, waitRelease: trace.Other, waitLoop: trace.Other, waitBack: trace.Other}

// threadOf finds the process and the name of a thread that still exists.
func threadOf(tid uint32) (tgid uint32, comm string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0, "", false
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		switch name {
		case "Name":
			comm = value
		case "Tgid":
			n, err := strconv.ParseUint(value, 10, 32)
			return uint32(n), comm, err == nil
		}
	}
	return 0, "", false
}
