package watch_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

const terminate = unix.SIGTERM

// What the loads do, and under which limits, in bytes and operations a second.
const (
	reads, writes         = 2e6, 4e6
	readLimit, writeLimit = 8e6, 5e6
	opsLimit              = 2000
	block                 = 16 << 10
	window                = 3 * time.Second
	close1                = 0.01 // how far from the kernel's counters a figure may be
	steady                = 1.05 // how far the rates of windows may be apart for that to say something
	attempts              = 5
)

// A subject is a group with limits on a disk, in which loads run.
type subject struct {
	e      environ.Environ
	dir    string // its directory
	cgroup string // as weir has it
	disk   *lab.TestDisk
	loads  []*exec.Cmd
}

// makeSubject makes a group.
func makeSubject(t *testing.T, e environ.Environ, name string) *subject {
	t.Helper()
	s := &subject{e: e, cgroup: "/" + name, disk: lab.Disk(t, lab.FS("ext4"))}
	root := e.Cgroups.Blkio
	if e.Cgroups.IOInV2 {
		root = e.Cgroups.Unified
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io +memory"), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.dir = filepath.Join(root, name)
	lab.Cgroup(t, s.dir)
	return s
}

// run starts a load in the group, until the test ends.
func (s *subject) run(t *testing.T, job load.Job) {
	t.Helper()
	job.File, job.For = filepath.Join(s.disk.Dir, fmt.Sprint("f", len(s.loads))), time.Hour
	if job.Read {
		if err := os.WriteFile(job.File, make([]byte, job.Size), 0o600); err != nil {
			t.Fatal(err)
		}
		unix.Sync()
	}
	cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec weir __load "$@"`, s.dir}, job.Args()...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.loads = append(s.loads, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// stop stops the loads where they are, and waits until nothing of theirs is under way.
func (s *subject) stop(t *testing.T) {
	t.Helper()
	for _, l := range s.loads {
		if err := l.Process.Signal(unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	var last counts
	var since time.Time
	lab.Await(t, 30*time.Second, "counters that stand still", func() bool {
		now := readCounts(t, s.e, s.dir, s.disk.Number)
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
}

// history is where weird records.
func (s *subject) history() string { return filepath.Join(s.disk.Dir, "history") }

// The figures of weir top, of weird's metrics and page, of weir show and of weir history are those of the kernel's counters,
// while a group reads and writes at known rates and when it has stopped.
func TestFiguresAreTheKernels(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd, lab.FS("ext4"))
	if e.Lane == "native" { // a guest has v1 too
		lab.Need(t, lab.Long)
	}
	s := makeSubject(t, e, "weir-watch-figures")
	weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--hold", "kernel", "--read", fmt.Sprint(int(readLimit)), "--write", fmt.Sprint(int(writeLimit)),
		"--write-iops", fmt.Sprint(opsLimit), "--on", s.disk.Node)
	s.run(t, load.Job{Path: load.Direct, Read: true, Block: block, Size: 16 << 20, Pace: reads})
	s.run(t, load.Job{Path: load.Direct, Block: block, Size: 16 << 20, Pace: writes})
	m := serve(t, "--page", "--history", s.history())
	lab.Await(t, 20*time.Second, "both loads", func() bool {
		now := readCounts(t, e, s.dir, s.disk.Number)
		return now["rbps"] > 1<<20 && now["wbps"] > 1<<20
	})
	// All views look at the same time, as does the test.
	lab.Ratio(t, "the worse of what weir top says of reads and writes", 1, lab.Written, func() float64 { return s.whileItMoves(t, m) })
	table := string(weir(t, "top", "--once"))
	t.Logf("weir top says\n%s", table)
	if row := rowOf(table, s.cgroup); !regexp.MustCompile(` (1\.[7-9]|2\.[0-3])\d MB +(3\.[4-9]|4\.[0-6])\d MB .* write +█+[▏▎▍▌▋▊▉]? +(6[8-9]|7\d|8\d|9[0-2]) % `).MatchString(row) {
		t.Errorf("weir top's table has %q", row)
	}
	s.stop(t)
	s.whenItStands(t, m)
}

// rowOf is a group's line of weir top's table.
func rowOf(table, cgroup string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "cgroup:"+cgroup+" ") {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// whileItMoves compares rates. It returns what weir top says of the known rates, the worse one.
func (s *subject) whileItMoves(t *testing.T, m scraper) float64 {
	for attempt := 1; ; attempt++ {
		var top, show view
		var doc api.Top
		var pages [2]page
		began := time.Now()
		drawn := m.charts(t, s.cgroup)
		r := follow(t, s.e, s.dir, s.disk.Number, func() {
			shown := make(chan view, 1)
			go func() { shown <- showOf(t, s.cgroup, s.disk.Number, window) }()
			pages[0] = m.scrapeAt(t)
			doc, top = topOf(t, s.cgroup, s.disk.Number, window)
			pages[1] = m.scrapeAt(t)
			show = <-shown
		})
		if t.Failed() {
			return 1
		}
		over := time.Duration(doc.WindowSeconds * float64(time.Second))
		rest := r[len(r)-1].before.Sub(began)
		disturbed := false
		for _, name := range names {
			for _, c := range []struct {
				view        string
				rate        float64
				first, last time.Time // when its window began
				window      time.Duration
			}{
				{"weir top", top.rates[name], doc.Time.Add(-over), doc.Time.Add(-over + 50*time.Millisecond), over},
				{"weir show", show.rates[name], began, began.Add(rest - window), window},
			} {
				least, most, err := r.rates(name, c.first, c.last, c.window)
				if err != nil {
					t.Error(err)
					return 1
				}
				t.Logf("%s: %s %.0f, the kernel %.0f to %.0f", c.view, name, c.rate, least, most)
				disturbed = disturbed || c.view == "weir top" && most > steady*least
				if c.rate < least*(1-close1) || c.rate > most*(1+close1) {
					t.Errorf("%s: %s is %.0f, by the kernel's counters %.0f to %.0f", c.view, name, c.rate, least, most)
				}
			}
		}
		for _, p := range pages {
			s.whenScraped(t, r, p)
		}
		disturbed = !s.whatWas(t, r, drawn()) || disturbed
		if read, write := top.rates["rbps"]/reads, top.rates["wbps"]/writes; !disturbed {
			if math.Abs(read-1) > math.Abs(write-1) {
				return read
			}
			return write
		}
		if attempt == attempts {
			t.Errorf("the rates were too uneven %d times to tell", attempts)
			return 1
		}
		lab.AwaitQuiet(t)
	}
}

// whenItStands compares all that does not depend on when somebody looks.
func (s *subject) whenItStands(t *testing.T, m scraper) {
	kernel := floats(readCounts(t, s.e, s.dir, s.disk.Number))
	rule := floats(readRule(t, s.e, s.dir, s.disk.Number))
	page := m.scrape(t)
	metrics := page.of(s.cgroup, s.disk.Node)
	doc, top := topOf(t, s.cgroup, s.disk.Number, 500*time.Millisecond)
	show := showOf(t, s.cgroup, s.disk.Number, 500*time.Millisecond)
	if now := floats(readCounts(t, s.e, s.dir, s.disk.Number)); !maps.Equal(now, kernel) {
		t.Fatalf("the counters went on: %v, then %v", kernel, now)
	}
	if len(kernel) != len(names) || len(rule) != 3 {
		t.Errorf("the kernel has counters %v and rule %v", kernel, rule)
	}
	for what, c := range map[string]struct{ got, want any }{
		"totals of weir top":      {top.totals, kernel},
		"totals of the metrics":   {metrics.totals, kernel},
		"limits of weir top":      {top.limits, rule},
		"limits of the metrics":   {metrics.limits, rule},
		"limits of weir show":     {show.limits, rule},
		"rates of weir top":       {top.rates, map[string]float64{"rbps": 0, "wbps": 0, "riops": 0, "wiops": 0}},
		"rates of weir show":      {show.rates, top.rates},
		"percent of weir top":     {top.percent, map[string]float64{"rbps": 0, "wbps": 0, "wiops": 0}},
		"what weir top expects":   {top.expected, show.expected},
		"what holds other files":  {top.foreign, show.foreign},
		"the pacer of weir top":   {top.paced, show.paced},
		"the pacer of the metric": {metrics.paced, show.paced},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	cells, _ := show.expected.([]place.Cell)
	for _, direction := range []string{"read", "write"} {
		want := 1.0
		for _, c := range cells {
			if c.Read == (direction == "read") && c.Mechanism == place.Nothing {
				want = 0
			}
		}
		if other, is := show.foreign.(*place.By); is && other != nil && direction == "write" && other.Mechanism == place.Nothing {
			want = 0
		}
		if got, known := page.held(s.cgroup, s.disk.Node, direction); !known || got != want || len(cells) == 0 {
			t.Errorf("the metrics say %v (%v) of whether %ss are expected to be held, want %v of %v", got, known, direction, want, cells)
		}
	}
	if s.e.Cgroups.IOInV2 {
		s.pressure(t, doc, page)
	}
}

// pressure compares the waits of a group at rest.
func (s *subject) pressure(t *testing.T, doc api.Top, page metrics) {
	if _, err := os.Stat(filepath.Join(s.dir, "io.pressure")); os.IsNotExist(err) { // as in user-mode Linux
		for _, g := range doc.Groups {
			if g.Pressure != nil {
				t.Errorf("weir top: %s has %+v, and the kernel tells of none", g.Cgroup, g.Pressure)
			}
		}
		return
	}
	some, full := -1.0, -1.0
	for line := range strings.Lines(readFile(t, s.dir, "io.pressure")) {
		_, total, _ := strings.Cut(strings.TrimSpace(line), "total=")
		if kind, _, _ := strings.Cut(line, " "); kind == "some" {
			some = float64(number(t, total)) / 1e6
		} else {
			full = float64(number(t, total)) / 1e6
		}
	}
	found := false
	for _, g := range doc.Groups {
		if g.Cgroup != s.cgroup {
			continue
		}
		if found = g.Pressure != nil; found && (g.Pressure.SomeSeconds != some || g.Pressure.FullSeconds != full) {
			t.Errorf("weir top: %+v, want %v and %v", g.Pressure, some, full)
		}
	}
	labels := fmt.Sprintf(`{cgroup=%q}`, s.cgroup)
	// weird read them when it saw the group move last.
	waiting, is := page["weir_io_pressure_waiting_seconds_total"+labels]
	if stalled := page["weir_io_pressure_stalled_seconds_total"+labels]; !found || !is || math.Abs(waiting-some) > close1*some || math.Abs(stalled-full) > close1*full {
		t.Errorf("the metrics have %v (%v) and %v, want %v and %v; weir top has them: %v", waiting, is, stalled, some, full, found)
	}
	if some <= 0 {
		t.Errorf("nobody waited: %v", some)
	}
}

func floats(c counts) map[string]float64 {
	f := map[string]float64{}
	for name, v := range c {
		f[name] = float64(v)
	}
	return f
}

// A group that weir's pacer holds is shown as such by all views, at its rate.
func TestPacedGroupIsShown(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Newest, lab.NoSystemd, lab.V1, lab.FS("ext4"))
	s := makeSubject(t, e, "weir-watch-paced")
	s.run(t, load.Job{Path: load.Buffered, Block: block, Size: 64 << 20, Pace: 20e6})
	const rate = 3e6
	weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--write", fmt.Sprint(int(rate)), "--on", s.disk.Node)
	defer func() {
		weir(t, "clear", "cgroup:"+s.cgroup, "--quiet")
	}()
	serving := serve(t)
	began := time.Now()
	page := serving.scrape(t)
	metrics := page.of(s.cgroup, s.disk.Node)
	_, top := topOf(t, s.cgroup, s.disk.Number, 500*time.Millisecond)
	show := showOf(t, s.cgroup, s.disk.Number, 0)
	paused := fmt.Sprintf("weir_io_throttled_seconds_total{cgroup=%q}", s.cgroup)
	later, took := serving.scrape(t)[paused], time.Since(began).Seconds()
	if more := later - page[paused]; page[paused] <= 0 || more <= 0 || more > took {
		t.Errorf("by the metrics the pacer paused it for %.3f s, and for %.3f s of the next %.3f s", page[paused], more, took)
	}
	if p := top.paused; p == nil || p.PausedSeconds == nil || *p.PausedSeconds < page[paused] || *p.PausedSeconds > later {
		t.Errorf("by weir top the pacer paused it for %+v; by the metrics before and after for %.3f and %.3f s", p, page[paused], later)
	}
	if top.paced != rate || show.paced != rate || metrics.paced != rate {
		t.Errorf("paced at %v (weir top), %v (weir show) and %v (metrics), want %v", top.paced, show.paced, metrics.paced, rate)
	}
	if !reflect.DeepEqual(top.expected, show.expected) || !strings.Contains(fmt.Sprint(show.expected), string(place.Pacer)) {
		t.Errorf("weir top expects %v, weir show %v", top.expected, show.expected)
	}
	if held, known := page.held(s.cgroup, s.disk.Node, "write"); !known || held != 1 {
		t.Errorf("the metrics say %v (%v) of whether the limit is expected to hold", held, known)
	}
	table := string(weir(t, "top", "--once", "--every", "500ms"))
	if row := rowOf(table, s.cgroup); !strings.Contains(row, "all (kernel, pacer)") {
		t.Errorf("weir top's table has %q in\n%s", row, table)
	}
	weir(t, "set", "cgroup:"+s.cgroup, "--quiet", "--hold", "kernel", "--write", fmt.Sprint(int(rate)), "--on", s.disk.Node)
	_, top = topOf(t, s.cgroup, s.disk.Number, 500*time.Millisecond)
	show = showOf(t, s.cgroup, s.disk.Number, 0)
	if top.paced != 0 || show.paced != 0 || !reflect.DeepEqual(top.expected, show.expected) || !strings.Contains(fmt.Sprint(top.expected), string(place.Nothing)) {
		t.Errorf("without the pacer: weir top paced at %v, expects %v; weir show %v, %v", top.paced, top.expected, show.paced, show.expected)
	}
}
