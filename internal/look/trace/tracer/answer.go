package tracer

import (
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/look/trace"
)

// answers are those to the questions of a trace.Tracer.
type answers struct {
	tracer *Tracer // open
	slows  *SlowWatch
	files  *FileWatch
}

// Answer makes what answers the questions of a trace.Tracer.
func Answer() func(name string, with []byte) (any, error) { return (&answers{}).to }

func (a *answers) to(name string, with []byte) (any, error) {
	switch name {
	case trace.Begin:
		return a.begin(with)
	case trace.Counts:
		return a.tracer.Snapshot()
	case trace.OpsOf:
		var k trace.Kind
		if err := helper.Unpack(with, &k); err != nil {
			return nil, err
		}
		return a.tracer.Ops(k)
	case trace.Unended:
		return a.tracer.Pending()
	case trace.SlowOnes:
		all, count, err := a.slows.Stop()
		return trace.SlowList{Slowest: all, Count: count}, err
	case trace.FileSums:
		return a.files.Files()
	case trace.LookFor:
		return nil, a.files.Look()
	}
	return nil, helper.Unknown(name)
}

func (a *answers) begin(with []byte) (missing []trace.Missing, err error) {
	var o trace.Options
	if err := helper.Unpack(with, &o); err != nil {
		return nil, err
	}
	if a.tracer, err = Open(o); err != nil {
		return nil, err
	}
	if o.Slower > 0 {
		a.slows = a.tracer.WatchSlow()
	}
	if o.Files {
		a.files = a.tracer.WatchFiles()
	}
	return a.tracer.Missing, nil
}
