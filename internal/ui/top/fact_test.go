package top

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
)

// A screen that was shown many snapshots, whose groups are mostly the same, shows what one shows that sees copies of them:
// nothing that it remembers of a group is another group's, or that of before.
func TestWhatIsRememberedIsRight(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	born := func(i int) *watch.Group {
		g := &watch.Group{Path: fmt.Sprintf("/s%d/g%d", i/10, i), Target: fmt.Sprintf("unit:g%d-%d", i, random.IntN(1000))}
		d := watch.Device{Number: blkdev.Number{Major: 8}, Node: "/dev/sda", Counted: true, Rates: &watch.Rates{WBPS: float64(random.IntN(3) * random.IntN(1e6))}}
		if random.IntN(3) > 0 {
			d.Limit = limit.None.With(limit.WBPS, limit.PerSecond(uint64(1+random.IntN(1e6))))
		}
		if random.IntN(20) == 0 {
			d.Rates = nil
		}
		g.Devices = []watch.Device{d}
		return g
	}
	groups := map[int]*watch.Group{}
	for i := range 60 {
		groups[i] = born(i)
	}
	same, copied := Screen{Width: 120, Height: 20}, Screen{Width: 120, Height: 20}
	for round := range 300 {
		one, other := &watch.Snapshot{At: time.Unix(1e9+int64(round), 0), Window: time.Second}, &watch.Snapshot{}
		for i := range 60 {
			switch random.IntN(40) {
			case 0:
				delete(groups, i)
			case 1, 2:
				groups[i] = born(i)
			}
			if g := groups[i]; g != nil {
				one.Groups = append(one.Groups, g)
			}
		}
		*other = *one
		other.Groups = nil
		for _, g := range one.Groups {
			again := *g
			again.Devices = slices.Clone(g.Devices)
			other.Groups = append(other.Groups, &again)
		}
		same.Show(View{Snapshot: one})
		copied.Show(View{Snapshot: other})
		keys := []string{"down", "up", "right", "r", "o", "a", "t", "space", "enter", "esc", "pgdown", "/", "g", "1", "enter"}
		key := keys[random.IntN(len(keys))]
		if same.Press(key) != copied.Press(key) {
			t.Fatal("one ends")
		}
		if a, b := same.Text(), copied.Text(); a != b {
			t.Fatalf("round %d, %s:\n%s\nwant\n%s", round, key, a, b)
		}
		if a, b := len(same.curves), len(copied.curves); a != b || len(same.facts) != len(one.Groups) {
			t.Fatalf("%d curves, want %d; facts of %d groups of %d", a, b, len(same.facts), len(one.Groups))
		}
		for _, g := range one.Groups {
			if a, b := same.measured.Of(g.Path), copied.measured.Of(g.Path); !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: %+v, want %+v", g.Path, a, b)
			}
		}
	}
}
