package metrics

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// Who has each reading is told which ones nobody has asked for.
func TestOwnReadings(t *testing.T) {
	f := NewFeed(&still{s: &watch.Snapshot{}}, 0)
	var all []bool
	f.Each(func(_ *watch.Snapshot, own bool) { all = append(all, own) })
	ctx := t.Context()
	_, first := f.Snapshot(ctx)
	_, second := f.Read(ctx)
	_, _, third := f.Measured(ctx)
	_, fourth := f.Newer(ctx, nil, -time.Second)
	_, fifth := f.Read(ctx)
	if first != nil || second != nil || third != nil || fourth != nil || fifth != nil || !slices.Equal(all, []bool{false, true, false, false, true}) {
		t.Errorf("%v", all)
	}
}
