package trace

import (
	"os"
	"time"
)

// A Report is what a trace found.
type Report struct {
	Took     time.Duration
	Ops      []OpsReport // of the kinds that were asked for and were seen
	Behind   []BehindReport
	Reclaim  Reclaim
	Evidence Evidence
	Advice   []Advice
	Open     []Slow    // operations that had not ended
	Slow     []Slow    // with a threshold: those that took longer
	Files    []File    // when asked for
	Missing  []Missing // hooks that the kernel does not have, or refuses
	Lost     Lost
}

// OpsReport is one kind of operation.
type OpsReport struct {
	Kind                     Kind
	Count, Errors            uint64
	Bytes                    uint64
	P50, P90, P99, P999, Max time.Duration
	// Split is all their time by part, and AboveP50 the extra time of operations slower than
	// the median.
	Split, AboveP50 Split
	Verdict         Verdict
	Buckets         []Bucket
	// Unseen are operations that were not fully traced. No other figure includes them.
	Unseen Unseen
}

// Sum is the time of all operations together.
func (o OpsReport) Sum() time.Duration { return o.Split.Time() }

// A Bucket is how many operations took between two times.
type Bucket struct {
	From, To time.Duration
	Count    uint64
}

// BehindReport is what went on in one direction that no operation waited for, added up over its
// requests.
type BehindReport struct {
	Write    bool // it is reading, otherwise
	Requests uint64
	Bytes    uint64
	// ThrottleKnown says that Throttle and ThrottleMost are known, and TotalMost includes them.
	ThrottleKnown           bool
	Throttle, Queue, Device time.Duration
	ThrottleMost, TotalMost time.Duration // of one request
}

// Direction is "read" or "write".
func (b BehindReport) Direction() string {
	if b.Write {
		return Write.String()
	}
	return Read.String()
}

// Reclaim is how often operations reclaimed memory, and what they freed.
type Reclaim struct {
	MemcgCalls  uint64
	MemcgBytes  uint64
	DirectCalls uint64
	DirectBytes uint64
	// MemcgKnown and DirectKnown say that the kernel told of them; what is not known is 0.
	MemcgKnown, DirectKnown bool
}

// Report makes a report of what was counted between two snapshots; before may be empty.
func (s *Snapshot) Report(before *Snapshot, kinds []Kind) Report {
	r := Report{Took: s.After - before.After, Lost: s.Lost}
	for _, k := range kinds {
		if o := s.Ops[k].report(k, &before.Ops[k]); o.Count > 0 || o.Unseen.Count > 0 {
			r.Ops = append(r.Ops, o)
		}
	}
	for i, write := range []bool{false, true} {
		b, was := s.Behind[i], before.Behind[i]
		if b.Requests == was.Requests {
			continue
		}
		one := BehindReport{Write: write, Requests: b.Requests - was.Requests, Bytes: b.Bytes - was.Bytes, ThrottleKnown: !s.ThrottleUnseen,
			Queue: b.Queue - was.Queue, Device: b.Device - was.Device, TotalMost: b.TotalMost}
		if one.ThrottleKnown {
			one.Throttle, one.ThrottleMost = b.Throttle-was.Throttle, b.ThrottleMost
		}
		r.Behind = append(r.Behind, one)
	}
	page := uint64(os.Getpagesize())
	r.Reclaim = Reclaim{s.MemcgReclaims.Calls - before.MemcgReclaims.Calls, (s.MemcgReclaims.Pages - before.MemcgReclaims.Pages) * page,
		s.DirectReclaims.Calls - before.DirectReclaims.Calls, (s.DirectReclaims.Pages - before.DirectReclaims.Pages) * page, !s.MemcgUnseen, !s.DirectUnseen}
	return r
}

func (o *Ops) report(k Kind, before *Ops) OpsReport {
	h := o.Histogram.Minus(&before.Histogram)
	r := OpsReport{Kind: k, Count: h.Count(), Errors: o.Errors - before.Errors, Bytes: o.Bytes - before.Bytes,
		Max: o.Most, Split: h.Split(), AboveP50: h.Above(), Unseen: o.Unseen.minus(before.Unseen)}
	quantile := func(q float64) time.Duration { return min(h.Quantile(q), r.Max) }
	r.P50, r.P90, r.P99, r.P999 = quantile(.5), quantile(.9), quantile(.99), quantile(.999)
	for i, c := range h {
		if c.Count > 0 {
			from, to := Bounds(i)
			r.Buckets = append(r.Buckets, Bucket{from, to, c.Count})
		}
	}
	r.Verdict = judge(&h, r.Split, r.AboveP50)
	r.Verdict.Partial = partial(r.Count, r.Sum(), r.Unseen)
	return r
}
