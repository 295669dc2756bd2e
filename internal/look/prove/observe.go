package prove

import (
	"context"
	"errors"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/process"
	"github.com/weir-io/weir/internal/look/load"
)

// Observe makes no load: it samples what the processes of a target do on its limited
// devices, and judges that. members lists the processes.
func (p Prover) Observe(ctx context.Context, places []Place, members func() ([]int, error), d time.Duration) ([]Row, error) {
	total, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	began := now()
	var watches []*watched
	for _, place := range places {
		for _, read := range []bool{false, true} {
			s := sampler{group: place.Target, device: place.Device.Number, devices: p.Devices, read: read}
			var err error
			if s.others, err = siblingsOf(s.group); err != nil {
				return nil, err
			}
			w := &watched{place: place, read: read, ended: make(chan error, 1)}
			watches = append(watches, w)
			go func() {
				var err error
				w.samples, err = s.run(total)
				w.ended <- err
			}()
		}
	}
	work := p.watchProcesses(total, members, d)
	var errs []error
	for _, w := range watches {
		errs = append(errs, <-w.ended)
	}
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return nil, err
	}
	var rows []Row
	for _, w := range watches {
		for _, k := range limit.Keys {
			if rate, bound := w.place.Limit.Get(k).Number(); bound && k.IsRead() == w.read {
				rows = append(rows, w.row(k, rate, began, work))
			}
		}
	}
	return rows, nil
}

// A watched device is sampled in one direction.
type watched struct {
	place   Place
	read    bool
	samples *Samples
	ended   chan error
}

func (w *watched) row(k limit.Key, rate uint64, began time.Duration, work workload) Row {
	device := w.samples.Device.of(k)
	r := &run{test: Test{Key: k, Rate: rate, For: 0, Path: load.Path("")}, group: w.place.Target, began: device[0].At, samples: w.samples}
	r.ended = device[len(device)-1].At
	r.result.Began, r.result.Ended = int64(r.began), int64(r.ended)
	r.test.For = r.ended - r.began
	r.writer = w.samples.Cgroup // what cannot be seen is taken for what was charged
	if !k.IsOps() {
		r.writer.Bytes = work.written
		if w.read {
			r.writer.Bytes = work.read
		}
	}
	r.observed = true
	if w.read {
		r.asked = work.asked
	}
	row := rowOf(w.place, r)
	row.Name = "its own " + k.Direction() + "s"
	if k.IsOps() {
		row.Name += ", by number"
	}
	return row
}

// A workload is what processes have had read from and dirtied for storage, of any
// device, and what they asked to read, of any file, pipe or socket: read_bytes,
// write_bytes and rchar of /proc/PID/io (proc.rst, 3.3).
type workload struct{ read, written, asked Series }

func (p Prover) watchProcesses(ctx context.Context, members func() ([]int, error), d time.Duration) workload {
	var w workload
	began := now()
	var sum process.Sum
	defer sum.Close()
	for {
		pids, _ := members() // a group that is gone has none
		io := sum.Look(pids, process.Proc)
		w.read, w.written, w.asked = w.read.add(now(), float64(io.ReadBytes)), w.written.add(now(), float64(io.WriteBytes)), w.asked.add(now(), float64(io.RChar))
		p.Progress("the target's own I/O", min(1, float64(now()-began)/float64(d)))
		select {
		case <-ctx.Done():
			return w
		case <-time.After(every):
		}
	}
}
