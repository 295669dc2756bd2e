package load

import "time"

// A Tick is how far a load is: what it has done since it began, also before the window
// that is counted.
type Tick struct {
	At    int64 `json:"at_ns"` // CLOCK_MONOTONIC
	Bytes int64 `json:"bytes"`
	Ops   int64 `json:"ops"`
}

// A Stall is a single operation that took longer than a second.
type Stall struct {
	At  int64         `json:"at_ns"` // its beginning, CLOCK_MONOTONIC
	For time.Duration `json:"for_ns"`
}

// Left is what the page cache holds of the file as the load ends, in bytes.
type Left struct {
	Known     bool  `json:"known"` // it takes cachestat(2), kernel 6.5; without, the rest is 0
	Dirty     int64 `json:"dirty"`
	Writeback int64 `json:"writeback"` // on its way to the disk
}

// A Result is what the load's own process saw. All but Stalls and Left is of the window
// that is counted.
type Result struct {
	Began   int64         `json:"began_ns"` // of the window, CLOCK_MONOTONIC
	Ended   int64         `json:"ended_ns"`
	Elapsed time.Duration `json:"elapsed_ns"` // Ended - Began
	Bytes   int64         `json:"bytes"`
	Ops     int64         `json:"ops"`
	// The latency of operations, from the call to its return or, Async, to its event's;
	// P50 and P99 to within 1 %, up to an hour.
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
	// Stalls are operations of the whole run, the first 1000 of them.
	Stalls []Stall `json:"stalls,omitempty"`
	// Cached is how many of the bytes read came from the page cache and not from the
	// disk: what could not be evicted before the round that read them.
	Cached int64 `json:"cached"`
	Left   Left  `json:"left"`
}

// BytesPerSec returns the rate.
func (r Result) BytesPerSec() float64 { return float64(r.Bytes) / r.Elapsed.Seconds() }

// OpsPerSec returns the rate of operations.
func (r Result) OpsPerSec() float64 { return float64(r.Ops) / r.Elapsed.Seconds() }
