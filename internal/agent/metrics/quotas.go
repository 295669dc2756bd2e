package metrics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-io/weir/internal/act/quota"
)

// Quotas are read at most once in quotasEvery, and quotasMost bounds how many are told.
const (
	quotasEvery = 10 * time.Second
	quotasMost  = 10_000
)

// Quotas have the quotas of a host, as they were lately. They may be asked by several at a time.
type Quotas struct {
	// List reads them. What it finds counts beside an error: some file systems could not be read.
	List func(context.Context) ([]quota.Status, error)

	mu      sync.Mutex
	last    []quota.Status
	at      time.Time
	reading chan struct{} // is closed at the end of a reading; nil: none is under way
}

// quotasPatience is how long a scrape waits for a reading: a disk that does not answer is not to keep
// it from everything else.
const quotasPatience = time.Second

// now are those that were read last, or what is read now if that takes no longer than a moment.
func (q *Quotas) now(ctx context.Context) []quota.Status {
	q.mu.Lock()
	if q.reading == nil && (q.at.IsZero() || time.Since(q.at) >= quotasEvery) {
		q.reading = make(chan struct{})
		go q.read(context.WithoutCancel(ctx))
	}
	reading := q.reading
	q.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-time.After(quotasPatience):
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

func (q *Quotas) read(ctx context.Context) {
	list, _ := q.List(ctx) // see List
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last, q.at = list, time.Now()
	close(q.reading)
	q.reading = nil
}

// quotas adds those of file systems that are mounted.
func (s sink) quotas(all []quota.Status) {
	type labelled struct {
		mount, project, target string
		quota.Status
	}
	var list []labelled
	for _, q := range all[:min(len(all), quotasMost)] {
		if q.FSType != "" { // else it is not mounted, and nobody knows what it stores
			list = append(list, labelled{label(q.Mount), strconv.FormatUint(uint64(q.Project), 10), label(q.Target), q})
		}
	}
	same := func(a, b labelled) int {
		return cmp.Or(cmp.Compare(a.mount, b.mount), cmp.Compare(a.project, b.project))
	}
	slices.SortStableFunc(list, same)
	list = slices.CompactFunc(list, func(a, b labelled) bool { return same(a, b) == 0 })
	for _, q := range list {
		own := labels(mountLabel, q.mount, projectLabel, q.project, targetLabel, q.target)
		s.add(quotaUsedBytes, float64(q.Usage.Bytes), own)
		s.add(quotaUsedFiles, float64(q.Usage.Files), own)
		if n := q.Bounds.Bytes; n > 0 {
			s.add(quotaLimitBytes, float64(n), own)
		}
		if n := q.Bounds.Files; n > 0 {
			s.add(quotaLimitFiles, float64(n), own)
		}
	}
}
