package tracer

import (
	"errors"
	"fmt"
	"maps"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// A step is a pair of programs that those at several functions go on to. So the kernel checks them
// once, and not for each function, which takes it five to ten times as long as to attach one. A
// call that begins before the program at its end is there would seem to have no end, so that one
// comes first.
type step struct {
	at       uint32   // enum step of bpf/trace_calls.h
	programs []string // where a call ends, and where it begins
	to       []string // those that go on to them
}

var (
	stepCall   = &step{0, []string{traceProgCallLeft, traceProgCallEntered}, []string{traceProgToCallLeft, traceProgToCallEntered}}
	stepSubmit = &step{1, []string{traceProgSubmitLeft, traceProgSubmitEntered}, []string{traceProgToSubmitLeft, traceProgToSubmitEntered}}
	stepReap   = &step{2, []string{traceProgReapLeft, traceProgReapEntered}, []string{traceProgToReapLeft, traceProgToReapEntered}}
	stepUring  = &step{3, []string{traceProgUringLeft, traceProgUringEntered}, []string{traceProgToUringLeft, traceProgToUringEntered}}
)

// stepTables are where the programs of a step are found.
var stepTables = []string{traceMapExits, traceMapEntries}

// tables are where the programs of steps are found, for functions of one type.
type tables struct {
	maps map[string]*ebpf.Map
	has  map[*step]bool
}

// stepsHome is the function that the programs of steps are loaded for: its type all kernels know whole.
var stepsHome = call{function: "write"}.functions()[0]

// loadOnto loads a program that goes on to a step, for a function. The step's own are loaded for
// stepsHome, or, where the kernel lets a program go on only to that of a function of the same type
// (28ead3eaabc1), for one of that type.
func (t *Tracer) loadOnto(name string, s *step, function string) (*ebpf.Program, error) {
	own, usual := t.functionOf(function), t.functionOf(stepsHome)
	if own == nil || usual == nil {
		return nil, fmt.Errorf("the kernel has no %s, or no %s", function, stepsHome)
	}
	same := own.Type == usual.Type
	if same || !t.typed {
		program, err := t.loadThrough(name, s, own, usual)
		if err == nil || same {
			return program, err
		}
		t.typed = true
	}
	return t.loadThrough(name, s, own, own)
}

// loadThrough loads a program for a function, and those that it goes on to for another one.
func (t *Tracer) loadThrough(name string, s *step, function, to *btf.Func) (*ebpf.Program, error) {
	all, err := t.tablesOf(to.Type)
	if err == nil {
		err = t.fill(all, s, to.Name)
	}
	if err != nil {
		return nil, err
	}
	if len(t.functionsOf(function.Name)) > 1 {
		return t.loadByID(name, function, all)
	}
	return t.load(name, function.Name, all)
}

// functionOf is the function of a name that the kernel's types have: of several, the one that
// has stepsHome's type, or the last; nil: none.
func (t *Tracer) functionOf(name string) (f *btf.Func) {
	usual := t.functionsOf(stepsHome)
	for _, f = range t.functionsOf(name) {
		if len(usual) == 1 && f.Type == usual[0].Type {
			break
		}
	}
	return f
}

// functionsOf are the functions of a name that the kernel's types have.
func (t *Tracer) functionsOf(name string) (all []*btf.Func) {
	types, err := t.types.AnyTypesByName(name)
	if err != nil { // there is none
		return nil
	}
	for _, one := range types {
		if f, ok := one.(*btf.Func); ok {
			all = append(all, f)
		}
	}
	return all
}

// tablesOf returns the tables for functions of a type.
func (t *Tracer) tablesOf(kind btf.Type) (*tables, error) {
	if t.tables[kind] != nil {
		return t.tables[kind], nil
	}
	all := &tables{maps: map[string]*ebpf.Map{}, has: map[*step]bool{}}
	for _, name := range stepTables {
		var err error
		if all.maps[name], err = ebpf.NewMap(t.spec.Maps[name]); err != nil {
			return nil, errors.Join(fmt.Errorf("make a table of programs: %w", err), all.close())
		}
	}
	t.tables[kind] = all
	return all, nil
}

// fill loads the programs of a step for a function, once.
func (t *Tracer) fill(all *tables, s *step, function string) error {
	if all.has[s] {
		return nil
	}
	for i, name := range s.programs {
		program, err := t.load(name, function, nil)
		if err != nil {
			return err
		}
		err = errors.Join(all.maps[stepTables[i]].Put(s.at, program), program.Close()) // the table holds it
		if err != nil {
			return fmt.Errorf("have programs go on to %s: %w", name, err)
		}
	}
	all.has[s] = true
	return nil
}

// over returns the maps of a trace, with these tables in place of its own.
func (all *tables) over(those map[string]*ebpf.Map) map[string]*ebpf.Map {
	if all == nil {
		return those
	}
	those = maps.Clone(those)
	maps.Copy(those, all.maps)
	return those
}

// closeTables has the kernel drop the programs that are found in tables.
func (t *Tracer) closeTables() error {
	var errs []error
	for _, all := range t.tables {
		errs = append(errs, all.close())
	}
	clear(t.tables)
	return errors.Join(errs...)
}

func (all *tables) close() error {
	var errs []error
	for _, m := range all.maps {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
