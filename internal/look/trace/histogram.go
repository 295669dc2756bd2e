package trace

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Cell is the operations whose latency is in one bucket.
type Cell struct {
	Count uint64
	Parts Split
}

// Buckets is BUCKETS of bpf/trace.h.
const Buckets = 512

// A Histogram counts operations by latency, log-linearly: eight buckets for each octave, so a
// bucket is at most an eighth wide.
type Histogram [Buckets]Cell

// A filled is a bucket with operations, in JSON.
type filled struct {
	Bucket int
	Cell
}

// MarshalJSON writes the buckets that have operations.
func (h Histogram) MarshalJSON() ([]byte, error) {
	all := []filled{}
	for i, c := range h {
		if c != (Cell{}) {
			all = append(all, filled{i, c})
		}
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var all []filled
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*h = Histogram{}
	for _, f := range all {
		if f.Bucket < 0 || f.Bucket >= Buckets {
			return fmt.Errorf("a histogram has no bucket %d", f.Bucket)
		}
		h[f.Bucket] = f.Cell
	}
	return nil
}

// bounds are a bucket's, ns; bucket_of in bpf/trace_op.h is the reverse.
func bounds(bucket int) (from, to uint64) {
	if bucket < 8 {
		return uint64(bucket), uint64(bucket) + 1
	}
	octave := bucket>>3 + 2
	from = uint64(8|bucket&7) << (octave - 3)
	return from, from + 1<<(octave-3)
}

// Bounds returns the latencies of a histogram's bucket by its index: from the first, up to but
// not including the second.
func Bounds(bucket int) (from, to time.Duration) {
	low, high := bounds(bucket)
	return time.Duration(low), time.Duration(high)
}

// Count is how many operations there are.
func (h *Histogram) Count() (n uint64) {
	for _, c := range h {
		n += c.Count
	}
	return n
}

// Split returns all time by part.
func (h *Histogram) Split() (s Split) {
	for _, c := range h {
		s = s.Plus(c.Parts)
	}
	return s
}

// Minus subtracts the state before.
func (h *Histogram) Minus(before *Histogram) (d Histogram) {
	for i, c := range h {
		d[i] = Cell{c.Count - min(c.Count, before[i].Count), c.Parts.Minus(before[i].Parts)}
	}
	return d
}

// Quantile is the latency that a share q (0 to 1) of the operations does not exceed. Operations
// count as evenly spread within a bucket. 0 without operations.
func (h *Histogram) Quantile(q float64) time.Duration {
	bucket, inside := h.at(q)
	if bucket < 0 {
		return 0
	}
	from, to := bounds(bucket)
	return time.Duration(float64(from) + inside*float64(to-from))
}

// at finds the bucket of a quantile, and how far into it that is; -1 without operations.
func (h *Histogram) at(q float64) (bucket int, inside float64) {
	rank := q * float64(h.Count())
	below, bucket := 0.0, -1
	for i, c := range h {
		if c.Count == 0 {
			continue
		}
		bucket = i
		if n := float64(c.Count); below+n >= rank {
			return i, max(rank-below, 0) / n
		}
		below += float64(c.Count)
	}
	return bucket, 1
}

// Above returns, by part, the time that operations slower than the median take beyond the
// average of the others.
func (h *Histogram) Above() (s Split) {
	middle, _ := h.at(0.5)
	if middle < 0 {
		return s
	}
	var usual Cell
	for _, c := range h[:middle+1] {
		usual.Count += c.Count
		usual.Parts = usual.Parts.Plus(c.Parts)
	}
	for _, c := range h[middle+1:] {
		for p, ns := range c.Parts {
			s[p] += ns - min(ns, usual.Parts[p]/usual.Count*c.Count)
		}
	}
	return s
}
