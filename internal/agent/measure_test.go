package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/lab"
)

// An agent reads the counters of what it limits, and says what it measured; of what is not measured
// it says why.
func TestMeasures(t *testing.T) {
	d := start(t, small)
	d.until("in force", has("small", reconcile.InForce))
	h, err := d.options.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	file := filepath.Join(h.Root, "sys/fs/cgroup/docker", webID, "io.stat")
	total := 0
	sample := func(more int) Held {
		t.Helper()
		total += more
		for _, file := range []string{file, filepath.Join(h.Root, "sys/fs/cgroup/docker/io.stat")} { // the kernel adds up
			count(t, file, total)
		}
		if _, _, err := d.measurer.sample(t.Context(), watch.IdleEvery); err != nil {
			t.Fatal(err)
		}
		s := d.Status()
		return s.Held[s.Targets[0].Key]
	}
	v := sample(0)
	if v.State != held.NotTold || len(v.Limits) != 1 || v.Limits[0].PerSec != 1_000_000 || v.Limits[0].Why == "" {
		t.Errorf("%+v", v)
	}
	// Far more than the limit, over a time that is measured: not held, and somebody is asked why.
	for began := time.Now(); v.State != held.NotHeld && time.Since(began) < patience; time.Sleep(500 * time.Millisecond) {
		v = sample(5_000_000)
	}
	if v.State != held.NotHeld || v.Limits[0].Rate < 1_100_000 || v.Limits[0].To.Sub(v.Limits[0].From) < held.WindowLeast {
		t.Fatalf("%+v", v)
	}
	d.until("explained", func(s Status) bool { return s.Held["docker:"+webID].Text != "" })
	if f := d.Status().Held["docker:"+webID].Finding; strings.Contains(f.Text, "cannot say") {
		t.Errorf("%+v", f)
	}
	// Somebody who asks too often gets what is there.
	one, err := d.measurer.snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if two, err := d.measurer.snapshot(t.Context()); err != nil || two != one {
		t.Errorf("%p, %p, %v", one, two, err)
	}
	<-d.measurer.sampling // a reading hangs
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	d.measurer.mu.Lock()
	d.measurer.last = nil
	d.measurer.mu.Unlock()
	if _, err := d.measurer.snapshot(ctx); err == nil {
		t.Error("it answers while a reading hangs")
	}
	if d.Live() != nil {
		t.Error("a reading that hangs has the agent killed")
	}
	d.measurer.sampling <- struct{}{}
}

// count has a group have written so much. Whoever reads meanwhile finds a file that is whole.
func count(t *testing.T, file string, bytes int) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, "254:0 rbytes=0 wbytes=%012d rios=0 wios=%012d dbytes=0 dios=0\n", bytes, bytes/4096)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// measuring runs a measurer beside a test, of a host on which /a is limited to a million bytes a second: stat
// is its file of counters.
func measuring(t *testing.T, test func(t *testing.T, m *measurer, stat string)) {
	t.Helper()
	first := hosttest.Open(t, "v2", map[string]string{"sys/fs/cgroup/a/io.max": "254:0 rbps=max wbps=1000000 riops=max wiops=max\n"}, host.Options{})
	stat := filepath.Join(first.Root, "sys/fs/cgroup/a/io.stat")
	count(t, stat, 0)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		m := newMeasurer(Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Open: func() (*host.Host, error) { return host.Open(host.Options{Root: first.Root}) }},
			func() []reconcile.Status {
				return []reconcile.Status{{Key: "cgroup:/a", Group: "/a", Plan: "small", State: reconcile.InForce, Since: began}}
			}, nil)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() { m.run(ctx); close(ended) }()
		defer func() { stop(); <-ended }()
		test(t, m, stat)
	})
}

// An agent that nobody asks measures by itself: it looks seldom until a target is near its limit, and then
// often enough for a measurement.
func TestMeasuresByItself(t *testing.T) {
	lab.Unit(t)
	measuring(t, func(t *testing.T, m *measurer, stat string) {
		time.Sleep(time.Second / 2) // nobody reads while it writes
		is := held.NotTold
		for second := 0; is != held.NotHeld && second < 40; second++ {
			time.Sleep(time.Second)
			count(t, stat, second*5_000_000)
			m.mu.Lock()
			is = m.verdicts["cgroup:/a"].State
			m.mu.Unlock()
		}
		if is != held.NotHeld {
			t.Errorf("after forty seconds of five times the limit it says %q", is)
		}
	})
}

// An agent whose targets do nothing reads their counters five times in the first two minutes, and each two minutes after
// that. It reads more often again as soon as it finds that one of them did something.
func TestReadsSeldomAtRest(t *testing.T) {
	lab.Unit(t)
	measuring(t, func(t *testing.T, m *measurer, stat string) {
		var last *watch.Snapshot
		busy := 0
		readings := func(over time.Duration) (n int) {
			for until := time.Now().Add(over); time.Now().Before(until); time.Sleep(time.Second) {
				m.mu.Lock()
				if m.last != last {
					n, last = n+1, m.last
				}
				m.mu.Unlock()
			}
			return n
		}
		if n := readings(2 * time.Minute); n != 5 {
			t.Errorf("%d readings in the first two minutes, want 5", n)
		}
		if n := readings(time.Hour); n < 29 || n > 31 {
			t.Errorf("%d readings in an hour, want 30", n)
		}
		wrote := 0
		for until := time.Now().Add(stillEvery + time.Minute); time.Now().Before(until); wrote++ {
			count(t, stat, wrote)
			n := readings(time.Second)
			if time.Until(until) < time.Minute {
				busy += n
			}
		}
		if busy < 5 {
			t.Errorf("%d readings in a minute in which one writes", busy)
		}
	})
}

// While somebody follows what groups do, an agent reads once a second for that and for itself, and goes on measuring.
func TestOneReadingForAll(t *testing.T) {
	lab.Unit(t)
	measuring(t, func(t *testing.T, m *measurer, stat string) {
		time.Sleep(time.Second / 2)
		var last *watch.Snapshot
		is := held.NotTold
		for second := range 40 {
			time.Sleep(time.Second)
			count(t, stat, second*5_000_000)
			s, err := m.newer(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			if second > 2 && (s == last || s.Window < time.Second || s.Window > time.Second+time.Millisecond) {
				t.Errorf("second %d: a reading over %v; somebody else reads beside it", second, s.Window)
			}
			last = s
			m.mu.Lock()
			is = m.verdicts["cgroup:/a"].State
			m.mu.Unlock()
		}
		if is != held.NotHeld {
			t.Errorf("after forty seconds of five times the limit it says %q", is)
		}
		time.Sleep(4 * time.Second) // nobody follows any more
		if s, err := m.snapshot(t.Context()); err != nil || s == last {
			t.Errorf("it does not read by itself again, %v", err)
		}
	})
}

// Who asks gets readings with rates, also when the watcher is replaced after its hour, cannot be, or was closed after an
// error.
func TestAWatcherIsReplaced(t *testing.T) {
	lab.Unit(t)
	measuring(t, func(t *testing.T, m *measurer, _ string) {
		var last *watch.Snapshot
		next := func(what string) {
			t.Helper()
			time.Sleep(time.Second)
			s, err := m.newer(t.Context(), last)
			if err != nil {
				t.Fatal(err)
			}
			if s == last || s.Window < 900*time.Millisecond || s.Window > 1100*time.Millisecond {
				t.Errorf("%s: a reading over %v", what, s.Window)
			}
			last = s
		}
		with := func(do func()) {
			<-m.sampling
			do()
			m.sampling <- struct{}{}
		}
		next("first")
		next("second")
		var before *watch.Watcher
		with(func() { before, m.opened = m.watcher, time.Now().Add(-watchMost-time.Second) })
		next("after an hour")
		with(func() {
			if m.watcher == before {
				t.Error("the watcher is not replaced")
			}
			before, m.opened = m.watcher, time.Now().Add(-watchMost-time.Second)
		})
		next("after the new watcher's first reading")
		open := m.options.Open
		with(func() {
			before, m.opened = m.watcher, time.Now().Add(-watchMost-time.Second)
			m.options.Open = func() (*host.Host, error) { return nil, errors.New("no files are left") }
		})
		next("no new one can be made")
		next("no new one could be made")
		with(func() {
			if m.watcher != before || time.Since(m.opened) < watchMost-failedEvery {
				t.Error("the former watcher is not used")
			}
			m.options.Open = open
			if err := m.shut(); err != nil {
				t.Error(err)
			}
		})
		next("after an error")
		next("and later")
	})
}

// Limits that a plan has changed are not "held" because those before them were.
func TestNewLimitsAreNotMeasured(t *testing.T) {
	lab.Unit(t)
	at := time.Now()
	m := newMeasurer(Options{}, func() []reconcile.Status { return nil }, nil)
	m.verdicts["docker:1"] = Held{Verdict: held.Verdict{State: held.Held, Since: at, Limits: []held.Limit{{PerSec: 10, State: held.Held, Since: at, From: at, To: at.Add(time.Minute)}}}}
	is := reconcile.Status{Key: "docker:1", State: reconcile.InForce, Since: at}
	if v := m.of(is); v.State != held.Held || len(v.Limits) != 1 {
		t.Errorf("%+v", v)
	}
	is.Since = at.Add(time.Hour)
	if v := m.of(is); v.State != held.NotTold || v.Limits[0].State != held.NotTold {
		t.Errorf("%+v", v)
	}
}
