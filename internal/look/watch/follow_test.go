package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// A tree is a v1 hierarchy of copies, with the sums that a kernel makes.
type tree struct {
	*watched
	bytes map[string]int // by group: "s/a"
}

const (
	bytesV1 = "blkio.throttle.io_service_bytes"
	opsV1   = "blkio.throttle.io_serviced"
	sumV1   = bytesV1 + "_recursive"
	rulesV1 = "blkio.throttle.write_bps_device"
)

func newTree(t *testing.T, groups ...string) *tree {
	w := &tree{watched: watching(t, cgroupfs.V1, nil), bytes: map[string]int{}}
	for _, g := range append([]string{""}, groups...) {
		w.put(g, 1)
	}
	w.sums()
	w.o.Follow = true
	w.start()
	if w.notices.fd == noNotices {
		t.Fatal("no instance of inotify")
	}
	return w
}

func (w *tree) file(group, name string) string {
	return filepath.Join(cgrouptest.V1Dir, group, name)
}

// put writes a group's counters.
func (w *tree) put(group string, n int) {
	if w.bytes[group] == 0 {
		for _, r := range []string{"read_bps", "read_iops", "write_iops", "write_bps"} {
			w.h.Write(w.file(group, "blkio.throttle."+r+"_device"), "")
		}
	}
	w.bytes[group] = n
	for _, file := range []string{bytesV1, opsV1} {
		w.h.Write(w.file(group, file), lineV1(n))
	}
}

// sums writes what the groups add up to.
func (w *tree) sums() {
	for above := range w.bytes {
		all := 0
		for g, n := range w.bytes {
			if rel, err := filepath.Rel("/"+above, "/"+g); err == nil && rel != ".." && rel[:min(3, len(rel))] != "../" {
				all += n
			}
		}
		w.h.Write(w.file(above, sumV1), lineV1(all))
	}
}

func (w *tree) remove(group string) {
	delete(w.bytes, group)
	if err := os.RemoveAll(filepath.Join(w.h.Root, w.file(group, ""))); err != nil {
		w.t.Fatal(err)
	}
}

// check compares a reading with what there is.
func (w *tree) check(step string) *Snapshot {
	w.t.Helper()
	s := w.sample(time.Second)
	got := map[string]int{}
	for _, g := range s.Groups {
		got[g.Path[1:]] = int(g.Devices[0].Total.WrittenBytes)
	}
	if !reflect.DeepEqual(got, w.bytes) {
		w.t.Errorf("%s: %v, want %v", step, got, w.bytes)
	}
	return s
}

// Groups of v1 that do nothing are not read as long as what is known of them adds up to the kernel's
// sum, and what any of them does is seen at once.
func TestSums(t *testing.T) {
	w := newTree(t, "s", "s/a", "s/b", "s/c", "r", "r/x", "r/x/y")
	w.check("first")
	w.check("again")
	if e := w.entries["/"]; !e.sure || e.size != 8 || e.total != 8 {
		t.Fatalf("the groups are not known: %+v", e)
	}
	for range hotRounds + 1 { // what has just been found counts as moving
		w.check("at rest")
	}
	w.h.Write(w.file("s/b", bytesV1), lineV1(99)) // which no sum has: no kernel does so
	if b := w.sample(time.Second).group("/s/b"); b.Devices[0].Total.WrittenBytes != 1 {
		t.Errorf("a group whose bytes add up was read: %+v", b.Devices[0])
	}
	w.put("s/b", 1)
	for i, g := range []string{"s/b", "r/x/y", "", "s", "r/x", "s/b"} {
		w.put(g, 1000+i)
		w.sums()
		s := w.check("one moves: " + g)
		if d := s.group("/" + g).Devices[0]; d.Rates == nil || d.Rates.WBPS == 0 {
			t.Errorf("%s: no rate: %+v", g, d)
		}
	}
	// One that moves each time hides no other.
	for i := range 5 {
		w.put("s/b", 5000+i)
		if i == 3 {
			w.put("s/c", 7)
		}
		w.sums()
		w.check(fmt.Sprint("one more moves: ", i))
	}
	if d := w.sample(time.Second).group("/s/c").Devices[0]; *d.Rates != (Rates{}) {
		t.Errorf("at rest again: %+v", d.Rates)
	}
	// Operations without bytes are seen after some time.
	w.h.Write(w.file("s/a", opsV1), lineV1(77))
	if a := w.sample(IdleEvery).group("/s/a").Devices[0]; a.Total.Writes != 77 {
		t.Errorf("operations: %+v", a.Total)
	}
	w.SetIdle(time.Hour)
	w.h.Write(w.file("s/a", opsV1), lineV1(88))
	if a := w.sample(IdleEvery).group("/s/a").Devices[0]; a.Total.Writes != 77 {
		t.Errorf("a group at rest was read before it is due: %+v", a.Total)
	}
	w.put("s/b", 6000)
	w.sums()
	if b := w.check("one that moves is read all the same").group("/s/b").Devices[0]; b.Rates == nil || b.Rates.WBPS == 0 {
		t.Errorf("%+v", b)
	}
	w.SetIdle(IdleEvery)
	if a := w.sample(IdleEvery).group("/s/a").Devices[0]; a.Total.Writes != 88 {
		t.Errorf("operations: %+v", a.Total)
	}
}

// Groups that come, go and are renamed are told of.
func TestFollowedGroupsComeAndGo(t *testing.T) {
	w := newTree(t, "s", "s/a", "s/b", "s/b/c")
	for range hotRounds + 2 {
		w.check("at rest")
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"one more", func() { w.put("s/d", 5) }},
		{"one below one that had none", func() { w.put("s/a/x", 6) }},
		{"one in the place of another", func() { w.remove("s/d"); w.put("s/e", 5) }},
		{"one less", func() { w.remove("s/e") }},
		{"one with another below", func() { w.remove("s/b/c"); w.remove("s/b"); w.put("t", 3); w.put("t/u", 4) }},
	} {
		step.do()
		w.sums()
		w.check(step.what)
		w.check(step.what + ", again")
	}
	at := func(g string) string { return filepath.Join(w.h.Root, w.file(g, "")) }
	for _, names := range [][2]string{{"s/a", "s/tmp"}, {"t", "s/a"}, {"s/tmp", "t"}} {
		if err := os.Rename(at(names[0]), at(names[1])); err != nil {
			t.Fatal(err)
		}
	}
	w.bytes["s/a"], w.bytes["t"] = w.bytes["t"], w.bytes["s/a"]
	w.bytes["s/a/u"], w.bytes["t/x"] = w.bytes["t/u"], w.bytes["s/a/x"]
	delete(w.bytes, "t/u")
	delete(w.bytes, "s/a/x")
	w.sums()
	if s := w.check("two have swapped their names"); s.group("/t").Devices[0].Rates != nil {
		t.Errorf("a rate over two groups: %+v", s.group("/t").Devices[0].Rates)
	}
}

// A rule that is written is seen in the next reading; others are read again rarely.
func TestWrittenRulesAreSeen(t *testing.T) {
	w := newTree(t, "s", "s/a")
	w.check("first")
	w.check("second")
	w.h.Write(w.file("s/a", rulesV1), "8:0 500\n")
	if a := w.check("a rule").group("/s/a"); a.Devices[0].Limit.Get(limit.WBPS) != limit.PerSecond(500) {
		t.Errorf("a written rule: %+v", a.Devices[0].Limit)
	}
	w.notices.end(w.entries["/s/a"]) // as if nobody told
	w.entries["/s/a"].watch = 1 << 30
	w.h.Write(w.file("s/a", rulesV1), "8:0 600\n")
	if a := w.sample(IdleEvery).group("/s/a"); a.Devices[0].Limit.Get(limit.WBPS) != limit.PerSecond(500) {
		t.Errorf("a rule that nobody told of, soon: %+v", a.Devices[0].Limit)
	}
	if a := w.sample(rulesEvery).group("/s/a"); a.Devices[0].Limit.Get(limit.WBPS) != limit.PerSecond(600) {
		t.Errorf("a rule that nobody told of, after %v: %+v", rulesEvery, a.Devices[0].Limit)
	}
}

// When events were lost, everything is looked at.
func TestLostNotices(t *testing.T) {
	w := newTree(t, "s", "s/a")
	w.check("first")
	w.check("second")
	for _, e := range w.entries { // nobody tells of what follows
		w.notices.end(e)
		e.watch = 1 << 30
	}
	w.put("s/b", 9)
	w.h.Write(w.file("s/a", rulesV1), "8:0 500\n")
	w.sums()
	w.event(-1, 0x4000, nil) // IN_Q_OVERFLOW
	if a := w.check("after an overflow").group("/s/a"); a.Devices[0].Limit.Get(limit.WBPS) != limit.PerSecond(500) {
		t.Errorf("%+v", a.Devices[0].Limit)
	}
}

// Without a watch for a group, as when the kernel allows no more, it is looked for and read as before.
func TestGroupsWithoutAWatch(t *testing.T) {
	w := newTree(t, "s", "s/a", "s/b")
	w.check("first")
	w.check("second")
	w.notices.end(w.entries["/s/a"])
	w.put("s/a/x", 4)
	w.sums()
	for range leafEvery {
		w.sample(time.Second)
	}
	w.check("one below it")
	w.put("s/b", 8)
	w.sums()
	w.check("one beside it moves")
}

// The counters of the root of v2 are not read, and groups below those at rest come and go all the same.
func TestFollowedV2(t *testing.T) {
	const was = "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n"
	w := watching(t, cgroupfs.V2, v2(map[string]string{"a/io.stat": was, "a/b/io.stat": was, "a/b/io.max": ""}))
	w.o.Follow = true
	w.start()
	w.sample(0)
	w.sample(time.Second)
	w.h.Write(cgrouptest.V2Dir+"/a/b/c/io.stat", was)
	w.h.Write(cgrouptest.V2Dir+"/a/b/io.max", "8:0 rbps=max wbps=1000 riops=max wiops=max\n")
	s := w.sample(time.Second)
	if s.group("/a/b/c") == nil || s.group("/a/b").Devices[0].Limit.Get(limit.WBPS) != limit.PerSecond(1000) {
		t.Errorf("%+v", s.Groups)
	}
	if err := os.RemoveAll(filepath.Join(w.h.Root, cgrouptest.V2Dir, "a/b/c")); err != nil {
		t.Fatal(err)
	}
	if s = w.sample(time.Second); s.group("/a/b/c") != nil || len(w.notices.of) != 2 {
		t.Errorf("after its end: %+v, %d watches", s.Groups, len(w.notices.of))
	}
}
