package main

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// A scrape makes no point of history: what it read is a part of the recorder's next one.
func TestScrapesMakeNoPoints(t *testing.T) {
	dir := t.TempDir()
	r, err := history.Record(dir, []history.Level{{Step: time.Second, Block: 8 << 10, Blocks: 4}, {Step: time.Minute, Block: 8 << 10, Blocks: 4}})
	if err != nil {
		t.Fatal(err)
	}
	recording := &recording{out: &cli.Out{}, r: r}
	began := time.Unix(1_700_000_000, 0)
	seen := func(after, window time.Duration, use float64, own bool) {
		recording.add(&watch.Snapshot{At: began.Add(after), Window: window, Version: 2, Pressure: &watch.Pressure{Known: true, Some: use}}, own)
	}
	seen(time.Second, time.Second, 10, true)
	seen(1100*time.Millisecond, 100*time.Millisecond, 100, false)
	seen(2*time.Second, 900*time.Millisecond, 0, true)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	kept, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for after, window := range map[time.Duration]time.Duration{1100 * time.Millisecond: time.Second, 2 * time.Second: time.Second} {
		s, err := kept.At(t.Context(), began.Add(after))
		if err != nil || s.Window != window || s.Pressure.Some != 10 {
			t.Errorf("after %v: %+v, %v", after, s, err)
		}
	}
}
