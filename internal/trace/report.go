package trace

import (
	"os"
	"time"
)

// A Report is what a trace found, for people and programs.
type Report struct {
	Seconds  float64        `json:"seconds"`
	Ops      []OpsReport    `json:"operations"` // of the kinds that were asked for and were seen
	Behind   []BehindReport `json:"behind"`     // by direction, as far as there was any
	Reclaim  Reclaim        `json:"reclaim"`
	Evidence Evidence       `json:"evidence"`
	Advice   []Advice       `json:"advice"`
	Open     []Slow         `json:"open"`    // operations that had not ended
	Slow     []Slow         `json:"slow"`    // with a threshold: those that took longer
	Files    []File         `json:"files"`   // when asked for
	Missing  []Missing      `json:"missing"` // hooks that the kernel does not have, or refuses
	Lost     Lost           `json:"lost"`
}

// OpsReport is one kind of operation.
type OpsReport struct {
	Kind    string  `json:"kind"`
	Count   uint64  `json:"count"`
	Errors  uint64  `json:"errors"`
	Bytes   uint64  `json:"bytes"`
	Seconds float64 `json:"seconds"` // summed over operations
	P50     float64 `json:"p50_us"`
	P90     float64 `json:"p90_us"`
	P99     float64 `json:"p99_us"`
	P999    float64 `json:"p999_us"`
	Max     float64 `json:"max_us"`
	// Split is all their time by part, and AboveP50 the extra time of operations slower than
	// the median; seconds.
	Split    map[string]float64 `json:"split_seconds"`
	AboveP50 map[string]float64 `json:"above_p50_seconds"`
	Verdict  Verdict            `json:"verdict"`
	Buckets  []Bucket           `json:"histogram"`
	// Unseen are operations that were not fully traced. No other figure includes them.
	Unseen UnseenReport `json:"not_fully_seen"`

	split, above Split
}

// UnseenReport is Unseen, for people and programs.
type UnseenReport struct {
	Count   uint64  `json:"count"`
	Seconds float64 `json:"seconds_min"` // they took at least so long
}

// A Bucket is how many operations took between two times.
type Bucket struct {
	From  float64 `json:"from_us"`
	To    float64 `json:"to_us"`
	Count uint64  `json:"count"`
}

// BehindReport is Behind of one direction, for people and programs.
type BehindReport struct {
	Direction string `json:"direction"` // "read" or "write"
	Requests  uint64 `json:"requests"`
	Bytes     uint64 `json:"bytes"`
	// ThrottleSeconds is summed over requests, as are the next two; nil: not known.
	ThrottleSeconds *float64 `json:"blk_throttle_seconds"`
	QueueSeconds    float64  `json:"block_queue_seconds"`
	DeviceSeconds   float64  `json:"device_seconds"`
	ThrottleMost    *float64 `json:"blk_throttle_most_us"` // nil: not known
	TotalMost       float64  `json:"most_us"`              // without the throttle's, where that is not known
}

// Reclaim is how often operations reclaimed memory, and what they freed.
type Reclaim struct {
	MemcgCalls  uint64 `json:"memcg_calls"`
	MemcgBytes  uint64 `json:"memcg_bytes"`
	DirectCalls uint64 `json:"direct_calls"`
	DirectBytes uint64 `json:"direct_bytes"`
}

const microsecond = float64(time.Microsecond)

// Report makes a report of what was counted between two snapshots; before may be empty.
func (s *Snapshot) Report(before *Snapshot, kinds []Kind) Report {
	r := Report{Seconds: (s.After - before.After).Seconds(), Lost: s.Lost,
		Ops: []OpsReport{}, Behind: []BehindReport{}, Advice: []Advice{}, Open: []Slow{}, Evidence: Evidence{Limits: []DeviceLimit{}}, Slow: []Slow{}, Files: []File{}, Missing: []Missing{}}
	for _, k := range kinds {
		if o := s.Ops[k].report(k, &before.Ops[k]); o.Count > 0 || o.Unseen.Count > 0 {
			r.Ops = append(r.Ops, o)
		}
	}
	for i, direction := range []string{"read", "write"} {
		b, was := s.Behind[i], before.Behind[i]
		if b.Requests == was.Requests {
			continue
		}
		one := BehindReport{Direction: direction, Requests: b.Requests - was.Requests, Bytes: b.Bytes - was.Bytes,
			QueueSeconds: (b.Queue - was.Queue).Seconds(), DeviceSeconds: (b.Device - was.Device).Seconds(), TotalMost: float64(b.TotalMost) / microsecond}
		if !s.ThrottleUnseen {
			held, most := (b.Throttle - was.Throttle).Seconds(), float64(b.ThrottleMost)/microsecond
			one.ThrottleSeconds, one.ThrottleMost = &held, &most
		}
		r.Behind = append(r.Behind, one)
	}
	page := uint64(os.Getpagesize())
	r.Reclaim = Reclaim{s.MemcgReclaims.Calls - before.MemcgReclaims.Calls, (s.MemcgReclaims.Pages - before.MemcgReclaims.Pages) * page,
		s.DirectReclaims.Calls - before.DirectReclaims.Calls, (s.DirectReclaims.Pages - before.DirectReclaims.Pages) * page}
	return r
}

func (o *Ops) report(k Kind, before *Ops) OpsReport {
	h := o.Histogram.Minus(&before.Histogram)
	r := OpsReport{Kind: k.String(), Count: h.Count(), Errors: o.Errors - before.Errors, Bytes: o.Bytes - before.Bytes,
		Max: float64(o.Most) / microsecond, split: h.Split(), above: h.Above(), Buckets: []Bucket{}}
	quantile := func(q float64) float64 { return min(float64(h.Quantile(q))/microsecond, r.Max) }
	r.P50, r.P90, r.P99, r.P999 = quantile(.5), quantile(.9), quantile(.99), quantile(.999)
	r.Seconds = float64(r.split.Sum()) / 1e9
	r.Split, r.AboveP50 = r.split.seconds(), r.above.seconds()
	for i, c := range h {
		if c.Count > 0 {
			from, to := bounds(i)
			r.Buckets = append(r.Buckets, Bucket{float64(from) / microsecond, float64(to) / microsecond, c.Count})
		}
	}
	r.Verdict = judge(&h, r.split, r.above)
	u := o.Unseen.minus(before.Unseen)
	r.Unseen = UnseenReport{u.Count, u.Time.Seconds()}
	r.Verdict.Partial = partial(r.Count, r.Seconds, r.Unseen)
	return r
}

// seconds returns the parts by name.
func (s Split) seconds() map[string]float64 {
	m := map[string]float64{}
	for p, ns := range s {
		m[Part(p).String()] = float64(ns) / 1e9
	}
	return m
}
