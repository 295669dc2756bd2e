package held

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// A Judge says the same whether a group that did nothing is one and the same in two snapshots, which it
// then hardly looks at, or another one.
func TestRestingGroups(t *testing.T) {
	lab.Unit(t)
	random := rand.New(rand.NewPCG(1, 2))
	kept, copied := NewJudge(), NewJudge()
	groups := make([]*watch.Group, 20)
	for i := range groups {
		groups[i] = &watch.Group{Path: fmt.Sprintf("/g%02d", i)}
		for minor := range uint32(1 + i%2) {
			groups[i].Devices = append(groups[i].Devices, watch.Device{Number: blkdev.Number{Major: 8, Minor: minor}, Counted: true,
				Limit: limit.None.Overlay(write(ten)), Expected: kernel()})
		}
	}
	at, told := time.Unix(1e9, 0), 0
	for range 500 {
		step := time.Duration(random.IntN(3000)) * time.Millisecond
		if random.IntN(40) == 0 {
			step = -step // the clock was set back
		}
		at = at.Add(step)
		one, other := &watch.Snapshot{At: at}, &watch.Snapshot{At: at}
		var all []Target
		for i, g := range groups {
			if random.IntN(100) == 0 {
				continue // it is not there for a moment
			}
			if at.Unix()/60%3 != int64(i%3) || random.IntN(10) == 0 { // it works for a minute and rests for two, with breaks
				groups[i] = g
			} else {
				groups[i] = changed(g, random, step)
			}
			again := *groups[i]
			one.Groups, other.Groups = append(one.Groups, groups[i]), append(other.Groups, &again)
			if random.IntN(100) > 0 {
				all = append(all, Target{Key: again.Path, Group: again.Path, Is: groups[i]})
			}
		}
		if random.IntN(5) == 0 { // as the agent asks, in any order
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		found := slices.Clone(all) // by their paths
		for i := range found {
			found[i].Is = nil
		}
		if random.IntN(5) == 0 {
			all = found
		}
		if a, b := kept.Look(one, all), copied.Look(other, found); a != b {
			t.Fatalf("busy: %v, want %v", a, b)
		}
		for _, g := range groups {
			a, b := kept.Of(g.Path), copied.Of(g.Path)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: %+v, want %+v", g.Path, a, b)
			}
			if a.State != NotTold {
				told++
			}
		}
	}
	if told < 500 {
		t.Errorf("only %d verdicts told anything", told)
	}
}

// changed is a group after it wrote for a time, or after its rule was changed.
func changed(g *watch.Group, random *rand.Rand, step time.Duration) *watch.Group {
	next := *g
	next.Devices = append([]watch.Device{}, g.Devices...)
	d := &next.Devices[random.IntN(len(next.Devices))]
	switch random.IntN(200) {
	case 0:
		d.Limit = limit.None.Overlay(write(ten + uint64(random.IntN(2))))
	case 1:
		d.Limit = limit.None
	case 2:
		d.Total = cgroupfs.Stat{}
	}
	for i := range next.Devices {
		next.Devices[i].Total.WrittenBytes += uint64(max(step.Seconds(), 0) * ten * (0.94 + 0.1*random.Float64()))
	}
	return &next
}
