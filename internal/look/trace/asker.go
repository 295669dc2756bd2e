package trace

import (
	"context"
	"os"
	"time"

	"github.com/weir-io/weir/internal/daemon/helper"
)

// HelperArg is the role of a helper that traces with package tracer. Its questions are below: Begin
// has Options and is answered by what is missing; OpsOf has a Kind; and the others have nothing.
const (
	HelperArg = "__trace"
	Begin     = "begin"
	Counts    = "counts"
	OpsOf     = "ops"
	Unended   = "unended"
	SlowOnes  = "slow"
	FileSums  = "files"
	LookFor   = "look for files"
)

// SlowList answers SlowOnes: the slowest operations, slowest first, and how many were slow.
type SlowList struct {
	Slowest []Slow
	Count   uint64
}

// A Tracer is a running trace, in a helper. What that has loaded is gone when it is closed or its
// process ends.
type Tracer struct {
	Missing []Missing
	Began   time.Time

	helper *helper.Helper
}

// Open starts a trace. If tracing is not available, the error is a *bpf.Unavailable.
func Open(o Options, helpers helper.Starter) (*Tracer, error) {
	if err := Hindrance(); err != nil {
		return nil, err
	}
	o, err := o.asked()
	if err != nil {
		return nil, err
	}
	h, err := helpers.Start(HelperArg)
	if err != nil {
		return nil, err
	}
	t := &Tracer{helper: h}
	if err := t.ask(Begin, o, &t.Missing); err != nil {
		_ = h.Close()
		return nil, err
	}
	t.Began = time.Now()
	return t, nil
}

// asked are the options for a helper, which leaves itself out of the trace, and this process too: it reads what
// is counted, and writes the report.
func (o Options) asked() (Options, error) {
	o.Asker = os.Getpid()
	return o.Resolved()
}

// Close ends the trace.
func (t *Tracer) Close() error { return t.helper.Close() }

// Snapshot reads the counts.
func (t *Tracer) Snapshot() (s Snapshot, err error) { return s, t.ask(Counts, nil, &s) }

// Ops reads the counts of one kind only, which costs a fraction of a Snapshot.
func (t *Tracer) Ops(k Kind) (o Ops, err error) { return o, t.ask(OpsOf, k, &o) }

// Pending lists operations that have not ended, the longest first.
func (t *Tracer) Pending() (all []Slow, err error) { return all, t.ask(Unended, nil, &all) }

// Slow returns the slowest operations, slowest first, and how many were slow. It can be called
// once, where Options say what is slow.
func (t *Tracer) Slow() (all []Slow, count uint64, err error) {
	var l SlowList
	err = t.ask(SlowOnes, nil, &l)
	return l.Slowest, l.Count, err
}

// Files returns the sums by file so far, the most time first, where Options ask for them.
func (t *Tracer) Files() (all []File, err error) { return all, t.ask(FileSums, nil, &all) }

// LookForFiles looks for the paths of new files, while processes have them open.
func (t *Tracer) LookForFiles() error { return t.ask(LookFor, nil, nil) }

func (t *Tracer) ask(question string, with, answer any) error {
	return t.helper.Ask(context.Background(), question, with, answer) // it answers at once
}
