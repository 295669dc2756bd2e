package history

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/watch"
)

// cutsVariable says how often TestPowerCut cuts the power.
const cutsVariable = "WEIR_HISTORY_CUTS"

const sector = 512

// A cached is a file on a disk with a cache that a power cut empties. Of each sector that was
// written since the last Sync, the disk then has any of the versions since, or the one before. So
// what was written later may be there, and what was written earlier not.
type cached struct {
	file     *memory
	dice     *rand.Rand
	versions map[int64][][]byte // of sectors, since the last Sync: the oldest is on the disk
	left     int                // operations until the power is cut
}

var errCut = errors.New("the power is cut")

func (c *cached) ReadAt(b []byte, at int64) (int, error) { return c.file.ReadAt(b, at) }
func (c *cached) Close() error                           { return nil }

func (c *cached) WriteAt(b []byte, at int64) (int, error) {
	c.left--
	if c.left < 0 {
		return 0, errCut
	}
	if c.left == 0 {
		b = b[:c.dice.IntN(len(b)+1)]
	}
	for s := at / sector; s*sector < at+int64(len(b)); s++ {
		now := c.file.text[s*sector:][:sector]
		if c.versions[s] == nil {
			c.versions[s] = [][]byte{append([]byte(nil), now...)}
		}
		next := append([]byte(nil), now...)
		from := max(0, at-s*sector)
		copy(next[from:], b[s*sector+from-at:])
		c.versions[s] = append(c.versions[s], next)
		copy(now, next)
	}
	if c.left == 0 {
		return len(b), errCut
	}
	return len(b), nil
}

func (c *cached) Sync() error {
	if c.left--; c.left <= 0 {
		return errCut
	}
	clear(c.versions)
	return nil
}

// cut leaves what the disk has, and gives the power back for some operations.
func (c *cached) cut(left int) {
	for s, all := range c.versions {
		copy(c.file.text[s*sector:][:sector], all[c.dice.IntN(len(all))])
	}
	clear(c.versions)
	c.left = left
}

// A power cut at any moment, on a disk with a cache, loses at most syncEvery of the finest level
// and nothing of the others but the step that is not over. What is read afterwards is what was
// kept, in order, and what a former cut has left is still there.
func TestPowerCut(t *testing.T) {
	cuts := 30
	if text := os.Getenv(cutsVariable); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 1))
	levels := small()
	for i := range levels {
		levels[i].Block = 24 << 10
	}
	disks := make([]*cached, len(levels))
	for i, l := range levels {
		disks[i] = &cached{file: &memory{text: append(l.head(), make([]byte, l.size()-headUsed)...)}, dice: dice, versions: map[int64][][]byte{}}
	}
	before := make([][]*watch.Snapshot, len(levels))
	next, lost, most := 1, 0, 0
	for round := range cuts {
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf("seed %d, cut %d: %s", seed, round, fmt.Sprintf(format, args...))
		}
		for _, d := range disks {
			d.cut(math.MaxInt)
		}
		at := []int{0, 0, 0, 0, 0, 0, 0, 1, 1, 2}[dice.IntN(10)] // coarser levels take longer
		disks[at].left = 1 + dice.IntN([]int{80, 20, 6}[at])
		told, err := recordUntil(disks, levels, next)
		if !errors.Is(err, errCut) {
			fail("%v", err)
		}
		for _, d := range disks {
			d.cut(math.MaxInt)
		}
		for i, l := range levels {
			got := all(t, &ring{f: disks[i], Level: l})
			if err := follows(before[i], got); err != nil {
				fail("level %s: %v", l.Step, err)
			}
			fresh := got
			if n := len(before[i]); n > 0 {
				at, _ := slices.BinarySearchFunc(got, before[i][n-1].At, func(s *watch.Snapshot, t time.Time) int { return s.At.Compare(t) })
				fresh = got[at:]
			}
			before[i] = got
			for _, s := range fresh {
				if err := isKept(s, l.Step); err != nil {
					fail("level %s: %v", l.Step, err)
				}
			}
			last := math.MinInt
			if len(got) > 0 {
				last = int(got[len(got)-1].At.Sub(start).Seconds())
			}
			if want := promised(l, next, told); last < want {
				fail("level %s: seconds from %d to %d were kept, and it ends at %d instead of %d", l.Step, next, told, last, want)
			}
			if i == 0 && told >= next {
				lost, most = lost+told-last, max(most, told-last)
			}
		}
		next = max(told+1, next) + 1 + dice.IntN(5) // the second in which it was cut may be there
	}
	if most == 0 {
		t.Error("no cut has lost anything: nothing was in the cache")
	}
	t.Logf("%d cuts, %d seconds recorded, %d lost, at most %d at once", cuts, next, lost, most)
}

// steady is seen without the groups that are busy in turn, and with others that never change: records
// take more than a sector and are as long as each other, and one that a cut has left may fit behind
// a new one.
func steady(n int) *watch.Snapshot {
	s := seen(n)
	s.Groups = slices.DeleteFunc(s.Groups, func(g *watch.Group) bool { return strings.HasPrefix(g.Path, "/turn") })
	d := s.Groups[len(s.Groups)-1].Devices[0]
	d.Rates = &watch.Rates{RBPS: 1e6, WBPS: 2e6, RIOPS: 10, WIOPS: 20}
	for i := range 30 {
		path := fmt.Sprintf("/z%02d", i)
		s.Groups = append(s.Groups, &watch.Group{Path: path, Target: "cgroup:" + path, Devices: []watch.Device{d}})
	}
	return s
}

// promised is the second that a level must go to when seconds were kept; it may have more.
func promised(l Level, first, told int) int {
	if l.Step == time.Second {
		if told < first {
			return math.MinInt
		}
		return max(told-int(syncEvery.Seconds())+1, first)
	}
	step := int64(l.Step.Seconds())
	end := int((start.Unix()+int64(told)-1)/step*step - start.Unix()) // the last step of which the next one has begun
	if end < first {
		return math.MinInt
	}
	return end
}

// A record whose predecessor a cut has taken is not read behind a new one of the same length.
func TestAHoleEndsABlock(t *testing.T) {
	l := Level{time.Second, 24 << 10, 4}
	disk := &cached{file: &memory{text: append(l.head(), make([]byte, l.size()-headUsed)...)}, dice: rand.New(rand.NewPCG(1, 1)), versions: map[int64][][]byte{}}
	disk.cut(35) // the power lasts for the seconds up to 30, of which those up to 21 are on the disk
	if told, err := recordUntil([]*cached{disk}, []Level{l}, 1); !errors.Is(err, errCut) || told != 30 {
		t.Fatalf("%d, %v", told, err)
	}
	hole := slices.Sorted(maps.Keys(disk.versions))[1]
	disk.versions = map[int64][][]byte{hole: disk.versions[hole][:1]}
	disk.cut(math.MaxInt)
	before := all(t, &ring{f: disk, Level: l})
	if n := len(before); n < 21 || n > 25 {
		t.Fatalf("%d seconds are left", n)
	}
	disk.left = 2 + 1 + 1 // to go on, for a second and its sync, and for half of another
	if told, err := recordUntil([]*cached{disk}, []Level{l}, 50); !errors.Is(err, errCut) || told > 51 {
		t.Fatalf("%d, %v", told, err)
	}
	after := all(t, &ring{f: disk, Level: l})
	if err := follows(before, after); err != nil || !after[len(before)].At.Equal(steady(50).At) {
		t.Errorf("%v; %d seconds, then %d", err, len(before), len(after))
	}
}

// recordUntil records seconds until the power is cut, and returns the last one that was kept. The
// one in which it was cut may be kept in part.
func recordUntil(disks []*cached, levels []Level, first int) (told int, err error) {
	r := &Recorder{unlock: func() {}}
	for i, l := range levels {
		w, err := goOn(&ring{f: disks[i], name: l.nameOf(), Level: l})
		if err != nil {
			return 0, err
		}
		r.writers = append(r.writers, w)
		if i > 0 {
			r.means = append(r.means, &mean{step: l.Step, place: map[series]int{}})
		}
	}
	for n := first; ; n++ {
		if err := r.Add(steady(n)); err != nil {
			return n - 1, err
		}
	}
}

// follows reports an error unless times rise, and what is left of before is the end of it.
func follows(before, now []*watch.Snapshot) error {
	for i := 1; i < len(now); i++ {
		if !now[i].At.After(now[i-1].At) {
			return fmt.Errorf("%s is after %s", now[i].At.Sub(start), now[i-1].At.Sub(start))
		}
	}
	if len(before) == 0 || len(now) == 0 {
		return nil
	}
	last := before[len(before)-1].At
	at := len(before) - 1
	for i := range now {
		if now[i].At.Equal(last) {
			for ; i >= 0; i, at = i-1, at-1 {
				if at < 0 || !reflect.DeepEqual(now[i], before[at]) {
					return fmt.Errorf("%s was not there before", now[i].At.Sub(start))
				}
			}
			return nil
		}
	}
	if now[0].At.After(last) && len(now) > 3 {
		return nil // the ring has turned over
	}
	return fmt.Errorf("%s was there before, and is gone", last.Sub(start))
}

// isKept reports an error unless a snapshot is what was recorded at its time, or the mean of that.
func isKept(s *watch.Snapshot, step time.Duration) error {
	last, n := int(s.At.Sub(start).Seconds()), int(s.Window.Seconds())
	if step == time.Second {
		if want := kept(steady(last)); !reflect.DeepEqual(s, want) {
			return fmt.Errorf("%d is\n%swant\n%s", last, show(s), show(want))
		}
		return nil
	}
	if s.At.Unix()%int64(step.Seconds()) != 0 || n < 1 || n > int(step.Seconds()) {
		return fmt.Errorf("a step of %d s ends at %d", n, last)
	}
	want := float64(last) - float64(n-1)/2
	for _, g := range s.Groups {
		if g.Target == "docker:web" && math.Abs(g.Devices[0].Rates.WBPS-want) > max(1.02, want/500) {
			return fmt.Errorf("the mean of %d s up to %d is %v, want %v", n, last, g.Devices[0].Rates.WBPS, want)
		}
	}
	return nil
}
