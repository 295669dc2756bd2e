package agent

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
)

// Whether it lives is asked several times a minute, and takes no more with thousands of targets.
func TestLiveTakesNoMore(t *testing.T) {
	d := prepare(t, "plans: {small: {write: 1MB/s}}\n")
	for i := range 1000 {
		key := fmt.Sprint("docker:", i)
		d.core.Decide(time.Now(), reconcile.Target{Key: key, Name: key, Group: "/" + key, Plan: "small"})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const times = 100
	for range times {
		if err := d.Live(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / times; took > 20_000 { // a list of the targets takes ten times as much
		t.Errorf("%d bytes for an answer", took)
	}
}
