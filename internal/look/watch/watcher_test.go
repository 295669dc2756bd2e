package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/place"
)

var sda = blkdev.Number{Major: 8}

// A watched host has a clock of its own.
type watched struct {
	t   *testing.T
	h   cgrouptest.Host
	now time.Time
	o   Options
	*Watcher
}

func watching(t *testing.T, version cgroupfs.Version, files map[string]string) *watched {
	t.Helper()
	w := &watched{t: t, h: cgrouptest.New(t, version, files), now: time.Unix(1e9, 0)}
	w.o = Options{Root: w.h.Root, IO: w.h.IO, Memory: w.h.IO, Now: func() time.Time { return w.now }}
	w.start()
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if w.open != 0 {
			t.Errorf("%d files are still open", w.open)
		}
	})
	return w
}

// start makes the watcher anew, with changed options.
func (w *watched) start() { w.Watcher = New(w.o) }

// sample reads after some time.
func (w *watched) sample(after time.Duration) *Snapshot {
	w.t.Helper()
	w.now = w.now.Add(after)
	s, err := w.Sample(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// group is the group of a path; nil: the snapshot has none.
func (s *Snapshot) group(path string) *Group {
	if i := slices.IndexFunc(s.Groups, func(g *Group) bool { return g.Path == path }); i >= 0 {
		return s.Groups[i]
	}
	return nil
}

func v2(files map[string]string) map[string]string {
	all := map[string]string{}
	for name, text := range files {
		all[filepath.Join(cgrouptest.V2Dir, name)] = text
	}
	return all
}

const pressureLine = "some avg10=0.00 avg60=0.00 avg300=0.00 total="

func TestSampleV2(t *testing.T) {
	w := watching(t, cgroupfs.V2, v2(map[string]string{
		"a/io.stat":         "8:0 rbytes=1000 wbytes=5000 rios=10 wios=50 dbytes=0 dios=0\n",
		"a/io.max":          "8:0 rbps=max wbps=1000 riops=max wiops=20\n8:16 rbps=7 wbps=max riops=max wiops=max\n",
		"a/io.pressure":     pressureLine + "1000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=500000\n",
		"a/memory.stat":     "file_dirty 300\nfile_writeback 100\nactive_file 9\n",
		"idle/io.stat":      "",
		"idle/io.max":       "",
		"none/cgroup.procs": "", // without the controller
		"none/x/io.stat":    "8:0 rbytes=1 wbytes=0 rios=1 wios=0\n",
	}))
	w.h.Write("sys/dev/block/8:0/stat", "10 0 2 0 20 0 4 0 1 1000 3000\n")
	w.h.Write("proc/pressure/io", pressureLine+"2000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	s := w.sample(0)
	if s.Window != 0 || s.Watched != 2 || len(s.Groups) != 1 || s.Unread != 0 {
		t.Fatalf("first: %+v", s)
	}
	a := s.group("/a")
	want := Device{Number: sda, Node: "8:0", Counted: true, Limit: limit.None.With(limit.WBPS, limit.PerSecond(1000)).With(limit.WIOPS, limit.PerSecond(20)),
		Total: cgroupfs.Stat{Device: sda, ReadBytes: 1000, WrittenBytes: 5000, Reads: 10, Writes: 50}}
	if !reflect.DeepEqual(a.Devices[0], want) {
		t.Errorf("first: %+v, want %+v", a.Devices[0], want)
	}
	if a.Devices[1].Counted || a.Devices[1].Limit.Get(limit.RBPS) != limit.PerSecond(7) || a.Devices[1].Number != (blkdev.Number{Major: 8, Minor: 16}) {
		t.Errorf("the device without counters: %+v", a.Devices[1])
	}
	if *a.Memory != (Memory{400, 100}) || a.Pressure.Known || a.Target != "cgroup:/a" {
		t.Errorf("first: %+v %+v", a.Memory, a.Pressure)
	}

	// Two seconds later it has written 1900 bytes in 10 operations, and waited for 0.5 s.
	w.h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=1000 wbytes=6900 rios=10 wios=60 dbytes=0 dios=0\n")
	w.h.Write(cgrouptest.V2Dir+"/a/io.pressure", pressureLine+"1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=700000\n")
	w.h.Write("sys/dev/block/8:0/stat", "14 0 6 0 20 0 12 0 3 2000 6000\n")
	w.h.Write("proc/pressure/io", pressureLine+"2400000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	s = w.sample(2 * time.Second)
	a = s.group("/a")
	d := a.Devices[0]
	if *d.Rates != (Rates{WBPS: 950, WIOPS: 5}) || s.Window != 2*time.Second {
		t.Errorf("rates: %+v", d.Rates)
	}
	if p, known := d.Percent(limit.WBPS); !known || p != 95 {
		t.Errorf("percent of the limit: %v, %v", p, known)
	}
	if _, known := d.Percent(limit.RBPS); known {
		t.Error("a rate without a limit has a percentage")
	}
	if near, k, p, known := a.Nearest(); !known || k != limit.WBPS || p != 95 || near.Number != sda {
		t.Errorf("Nearest = %v %v %v %v", near, k, p, known)
	}
	if p := a.Pressure; !p.Known || p.Some != 25 || p.Full != 10 {
		t.Errorf("pressure: %+v", p)
	}
	if sum, known := a.Sum(); !known || sum != (Rates{WBPS: 950, WIOPS: 5}) {
		t.Errorf("Sum = %v, %v", sum, known)
	}
	disk := s.Disks[0]
	if len(s.Disks) != 1 || *disk.Rates != (Rates{RBPS: 1024, WBPS: 2048, RIOPS: 2}) || disk.Use != 50 || disk.Queue != 1.5 || disk.Total.InFlight != 3 {
		t.Errorf("disks: %+v", s.Disks)
	}
	if !s.Pressure.Known || s.Pressure.Some != 20 {
		t.Errorf("the host's pressure: %+v", s.Pressure)
	}

	// Then nothing: rates are 0, the group stays.
	if s = w.sample(time.Second); *s.group("/a").Devices[0].Rates != (Rates{}) {
		t.Errorf("at rest: %+v", s.group("/a").Devices[0].Rates)
	}
}

// The counters of a v2 group include those below it: if they stay, no group below is read, until
// it is time to look at all.
func TestIdleGroupsAreReadRarely(t *testing.T) {
	const was, is = "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n", "8:0 rbytes=0 wbytes=30 rios=0 wios=2\n"
	w := watching(t, cgroupfs.V2, v2(map[string]string{"a/io.stat": was, "a/b/io.stat": was, "a/b/c/io.stat": was}))
	w.sample(0)
	w.sample(time.Second) // to see that nothing has changed
	w.h.Write(cgrouptest.V2Dir+"/a/b/c/io.stat", is)
	if c := w.sample(time.Second).group("/a/b/c"); c.Devices[0].Total.WrittenBytes != 10 || *c.Devices[0].Rates != (Rates{}) {
		t.Errorf("below a group at rest: %+v", c.Devices[0])
	}
	if c := w.sample(IdleEvery).group("/a/b/c"); c.Devices[0].Total.WrittenBytes != 30 {
		t.Errorf("after %v: %+v", IdleEvery, c.Devices[0])
	}
	// As the kernel has it: what c does is in a and in b too.
	for _, path := range []string{"a", "a/b", "a/b/c"} {
		w.h.Write(cgrouptest.V2Dir+"/"+path+"/io.stat", "8:0 rbytes=0 wbytes=130 rios=0 wios=2\n")
	}
	s := w.sample(time.Second)
	if c := s.group("/a/b/c").Devices[0]; c.Total.WrittenBytes != 130 || c.Rates == nil || c.Rates.WBPS != 100 {
		t.Errorf("after a has changed: %+v %+v", c, c.Rates)
	}
}

func TestGroupsComeAndGo(t *testing.T) {
	w := watching(t, cgroupfs.V2, v2(map[string]string{"a/io.stat": "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n"}))
	if s := w.sample(0); len(s.Groups) != 1 {
		t.Fatalf("%+v", s.Groups)
	}
	w.h.Write(cgrouptest.V2Dir+"/b/io.stat", "8:0 rbytes=0 wbytes=70 rios=0 wios=1\n")
	s := w.sample(time.Second)
	if b := s.group("/b"); b == nil || b.Devices[0].Rates != nil || b.Devices[0].Total.WrittenBytes != 70 {
		t.Errorf("a new group: %+v", b)
	}
	if err := os.RemoveAll(filepath.Join(w.h.Root, cgrouptest.V2Dir, "a")); err != nil {
		t.Fatal(err)
	}
	if s = w.sample(time.Second); s.group("/a") != nil || s.Watched != 1 || s.Unread != 0 || w.open != 1 {
		t.Errorf("after it has gone: %+v, %d files", s, w.open)
	}
	// A group below one that is at rest and had none is found within some readings.
	w.h.Write(cgrouptest.V2Dir+"/b/x/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0\n")
	rounds := 0
	for ; s.group("/b/x") == nil && rounds <= leafEvery; rounds++ {
		s = w.sample(time.Second)
	}
	if rounds > leafEvery {
		t.Error("a group below a group at rest is not found")
	}
	// Counters that go back are no rate.
	w.h.Write(cgrouptest.V2Dir+"/b/io.stat", "8:0 rbytes=0 wbytes=20 rios=0 wios=1\n")
	if b := w.sample(time.Second).group("/b").Devices[0]; b.Rates != nil || b.Total.WrittenBytes != 20 {
		t.Errorf("counters went back: %+v", b)
	}
	w.h.Write(cgrouptest.V2Dir+"/b/io.stat", "8:0 rbytes=0 wbytes=25 rios=0 wios=1\n")
	if b := w.sample(time.Second).group("/b").Devices[0]; b.Rates == nil || b.Rates.WBPS != 5 {
		t.Errorf("and on again: %+v", b)
	}
	// What cannot be read is counted, and the others are there.
	w.h.Write(cgrouptest.V2Dir+"/c/io.stat", "8:0 rbytes=none\n")
	if s = w.sample(time.Second); s.Unread != 1 || s.Unreadable == nil || s.group("/b") == nil {
		t.Errorf("beside a broken file: %+v", s)
	}
	// So is a limit that cannot, in each reading, and not only in those that look at it again.
	w.h.Write(cgrouptest.V2Dir+"/d/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0\n")
	w.h.Write(cgrouptest.V2Dir+"/d/io.max", "8:0 rbps=none\n")
	for range 3 {
		if s = w.sample(time.Second); s.Unread != 2 {
			t.Errorf("beside a broken limit %d are unread (%v), want 2", s.Unread, s.Unreadable)
		}
	}
}

func TestSampleV1(t *testing.T) {
	dir := cgrouptest.V1Dir
	const throttle = "/blkio.throttle."
	w := watching(t, cgroupfs.V1, map[string]string{
		"proc/1/mountinfo":                  "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
		"sys/fs/cgroup/memory/tasks":        "",
		dir + throttle + "io_service_bytes": "8:0 Read 9\n8:0 Write 9\n8:0 Total 18\nTotal 18\n",
		dir + throttle + "io_serviced":      "8:0 Read 1\n8:0 Write 1\n8:0 Total 2\nTotal 2\n",
		dir + throttle + "read_bps_device":  "", dir + throttle + "write_bps_device": "", dir + throttle + "read_iops_device": "", dir + throttle + "write_iops_device": "",
		dir + "/a" + throttle + "io_service_bytes": "8:0 Read 100\n8:0 Write 200\n8:0 Total 300\nTotal 300\n",
		dir + "/a" + throttle + "io_serviced":      "8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n",
		dir + "/a" + throttle + "read_bps_device":  "", dir + "/a" + throttle + "write_bps_device": "8:0 400\n", dir + "/a" + throttle + "read_iops_device": "8:0 8\n", dir + "/a" + throttle + "write_iops_device": "",
		"sys/fs/cgroup/memory/a/memory.stat": "cache 9\ndirty 1\nwriteback 1\ntotal_dirty 500\ntotal_writeback 20\n",
	})
	if w.o.Memory = w.h.FS.With("memory"); w.o.Memory == nil {
		t.Fatal("no hierarchy of memory")
	}
	w.start()
	s := w.sample(0)
	if len(s.Groups) != 2 || s.Groups[0].Path != "/" || s.Unread != 0 {
		t.Fatalf("%+v (%v)", s, s.Unreadable)
	}
	a := s.group("/a")
	if *a.Memory != (Memory{520, 20}) || a.Pressure != nil {
		t.Errorf("%+v, %+v", a.Memory, a.Pressure)
	}
	if l := a.Devices[0].Limit; l.Get(limit.WBPS) != limit.PerSecond(400) || l.Get(limit.RIOPS) != limit.PerSecond(8) || !l.Get(limit.RBPS).IsUnlimited() {
		t.Errorf("limit: %+v", l)
	}
	w.h.Write(dir+"/a"+throttle+"io_service_bytes", "8:0 Read 100\n8:0 Write 600\n8:0 Total 700\nTotal 700\n")
	w.h.Write(dir+"/a"+throttle+"io_serviced", "8:0 Read 1\n8:0 Write 4\n8:0 Total 5\nTotal 5\n")
	w.h.Write(dir+"/a"+throttle+"write_bps_device", "8:0 500\n") // somebody has changed it
	d := w.sample(time.Second).group("/a").Devices[0]
	if *d.Rates != (Rates{WBPS: 400, WIOPS: 2}) {
		t.Errorf("rates: %+v", d.Rates)
	}
	if p, known := d.Percent(limit.WBPS); !known || p != 80 {
		t.Errorf("percent of the new limit: %v, %v", p, known)
	}
	if w.open != 4 {
		t.Errorf("%d files are open", w.open)
	}
}

func TestDescribe(t *testing.T) {
	w := watching(t, cgroupfs.V2, v2(map[string]string{
		"a/io.stat": "", "a/io.max": "8:0 rbps=max wbps=1000 riops=max wiops=20\n",
		"b/io.stat": "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n", "b/io.max": "",
	}))
	asked := map[string]int{}
	var fails error
	held := place.Expected{Placed: place.Placed{Device: blkdev.Device{Number: sda}}}
	held.Direct, held.Sync, held.Mapped, held.Buffered = place.By{Mechanism: place.Throttle}, place.By{Mechanism: place.Throttle}, place.By{Mechanism: place.Writeback}, place.By{Mechanism: place.Writeback}
	w.o.Describe = func(_ context.Context, groups []Limited) (all []Known, err error) {
		for _, g := range groups {
			asked[g.Group.Path()]++
			k := Known{Target: "unit:" + g.Group.Path()[1:]}
			if len(g.Usages) > 0 {
				now := held
				k.Expected = []*place.Expected{&now}
			}
			all = append(all, k)
		}
		return all, fails
	}
	var paced map[string]Paced
	w.o.Paced = func() (map[string]Paced, error) { return paced, nil }
	w.start()
	a := w.sample(0).group("/a")
	if a.Target != "unit:a" || a.Paced != nil {
		t.Errorf("%+v", a)
	}
	if by, all := a.Devices[0].Holders(limit.WBPS); !all || !slices.Equal(by, []place.Mechanism{place.Throttle, place.Writeback}) {
		t.Errorf("Holders = %v, %v", by, all)
	}
	if by, all := a.Devices[0].Holders(limit.RBPS); all || by != nil {
		t.Errorf("Holders without a limit = %v, %v", by, all)
	}
	held.Buffered = place.By{Mechanism: place.Pacer}
	paced = map[string]Paced{"/a": {WBPS: 1000}}
	a = w.sample(pacedEvery).group("/a")
	if asked["/a"] != 2 || asked["/b"] != 1 || a.Paced == nil || a.Paced.WBPS != 1000 {
		t.Errorf("when the pacer has begun: %v, %+v", asked, a.Paced)
	}
	if by, all := a.Devices[0].Holders(limit.WIOPS); all || !slices.Equal(by, []place.Mechanism{place.Throttle, place.Writeback}) {
		t.Errorf("the pacer does not count operations: %v, %v", by, all)
	}
	// The answer is about the limit that was asked about.
	w.h.Write(cgrouptest.V2Dir+"/a/io.max", "8:0 rbps=max wbps=2000 riops=max wiops=20\n")
	fails = errors.New("silent")
	if s := w.sample(IdleEvery); asked["/a"] != 3 || s.Unread != 1 {
		t.Errorf("after a change: %v, %+v", asked, s)
	}
	w.sample(time.Second)
	if asked["/a"] != 3 || asked["/b"] != 1 {
		t.Errorf("without a change: %v", asked)
	}
	w.h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=0 wbytes=70 rios=0 wios=1\n")
	w.sample(describeEvery)
	if asked["/a"] != 4 || asked["/b"] != 1 {
		t.Errorf("after %v: %v", describeEvery, asked)
	}
	w.sample(describeEvery) // the minute before it acted
	asked["/a"] = 4
	w.sample(describeEvery)
	if asked["/a"] != 4 || asked["/b"] != 1 {
		t.Errorf("at rest, after %v: %v", describeEvery, asked)
	}
	w.sample(restedEvery)
	if asked["/a"] != 5 || asked["/b"] != 1 {
		t.Errorf("at rest, after %v: %v", restedEvery, asked)
	}
}

// With fewer files than groups the others are opened for each reading, and figures are the same.
func TestFewFiles(t *testing.T) {
	w := watching(t, cgroupfs.V2, v2(map[string]string{
		"a/io.stat": "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n", "b/io.stat": "8:0 rbytes=0 wbytes=10 rios=0 wios=1\n"}))
	w.o.Keep = 1
	w.start()
	w.sample(0)
	for _, g := range []string{"a", "b"} {
		w.h.Write(cgrouptest.V2Dir+"/"+g+"/io.stat", "8:0 rbytes=0 wbytes=40 rios=0 wios=1\n")
	}
	s := w.sample(time.Second)
	if w.open != 1 || *s.group("/a").Devices[0].Rates != (Rates{WBPS: 30}) || *s.group("/b").Devices[0].Rates != (Rates{WBPS: 30}) {
		t.Errorf("%d files: %+v %+v", w.open, s.group("/a"), s.group("/b"))
	}
}

// Of known groups only so many are looked at, those first that were looked at longest ago.
func TestDetailsAreBounded(t *testing.T) {
	files := map[string]string{}
	for _, g := range []string{"a", "b", "c"} {
		files[g+"/io.stat"], files[g+"/io.max"] = "", ""
	}
	w := watching(t, cgroupfs.V2, v2(files))
	w.o.Details = 2
	w.start()
	w.sample(0)
	for _, g := range []string{"a", "b", "c"} {
		w.h.Write(cgrouptest.V2Dir+"/"+g+"/io.max", "8:0 rbps=5 wbps=max riops=max wiops=max\n")
	}
	if s := w.sample(IdleEvery); len(s.Groups) != 2 || s.group("/c") != nil {
		t.Errorf("at first: %+v", s.Groups)
	}
	if s := w.sample(time.Second); len(s.Groups) != 3 {
		t.Errorf("then: %+v", s.Groups)
	}
}

func TestSampleEndsWithItsContext(t *testing.T) {
	w := watching(t, cgroupfs.V2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Sample(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Sample = %v", err)
	}
}

func TestPressureGoesBack(t *testing.T) {
	was := cgroupfs.Pressure{Some: time.Second}
	if p := pressureOf(cgroupfs.Pressure{}, &was, time.Second); p.Known {
		t.Errorf("%+v", p)
	}
	if p := pressureOf(cgroupfs.Pressure{Some: 9 * time.Second}, &was, time.Second); p.Some != 100 {
		t.Errorf("more time than there was: %+v", p)
	}
}
