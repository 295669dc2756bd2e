package pacer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A steady writer writes at one speed while its group is not paused.
type steady struct {
	p       *paced
	speed   float64
	began   time.Duration
	last    time.Duration // the last look
	longest time.Duration // that nobody looked
	total   float64
	enough  func(written time.Duration)
}

func (w *steady) look(now time.Duration, _ []int) (unseen float64, err error) {
	end := now
	if w.p.stopped {
		end = w.p.halted
	}
	if from := max(w.last, w.p.let, w.began); end > from && w.last > 0 {
		unseen = w.speed * (end - from).Seconds()
	}
	if w.last > 0 {
		w.longest = max(w.longest, now-w.last)
	}
	w.last = now
	w.total += unseen
	w.enough(now - w.began)
	return unseen, nil
}

func (w *steady) joined()          {}
func (w *steady) charged() float64 { return 0 }
func (w *steady) on(Job)           {}
func (w *steady) close()           {}

// A group that writes ten times its limit is paused so often that its average is the limit, but for
// what it writes while nobody looks. Then it is let go, and is where it was.
func TestPacing(t *testing.T) {
	for name, version := range map[string]cgroupfs.Version{"v1": cgroupfs.V1, "v2": cgroupfs.V2} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, version)
			pid := h.sleeper("/a")
			s := h.server()
			if a := s.answer(ask{Add: new(h.job())}); a.Error != "" {
				t.Fatal(a.Error)
			}
			p := s.of(h.job().Limited)
			if in := h.in(h.cell("/a")); !slices.Equal(in, []string{pid}) || len(h.in(h.group("/a"))) != 0 {
				t.Fatalf("in the cell are %q", in)
			}
			ctx, stop := context.WithCancelCause(t.Context())
			done := errors.New("enough")
			w := &steady{p: p, speed: 10e6, began: clockNow(), enough: func(d time.Duration) {
				if d > time.Second && p.stops > 2 {
					stop(done)
				}
			}}
			p.meter = w
			if err := s.run(ctx); !errors.Is(err, done) {
				t.Fatal(err)
			}
			limit := 1e6 * (w.last - w.began).Seconds()
			most, least := limit+10e6*w.longest.Seconds()+1e6*depthBusy.Seconds(), (limit-1e6*w.longest.Seconds())/2
			if w.total > most || w.total < least {
				t.Errorf("%.0f bytes were written in %s, and %.0f to %.0f may be; %d stops, longest unseen %s", w.total, w.last-w.began, least, most, p.stops, w.longest)
			}
			a := s.answer(ask{Seen: new(h.job().Limited)})
			if a.Seen == nil || a.Seen.Stops != p.stops {
				t.Errorf("seen is %+v", a)
			}
			// It runs a tenth of the time, and what it wrote too much is paid for by pauses as well.
			sums, all := s.answer(ask{Sums: true}).Sums, clockNow()-w.began
			if len(sums) != 1 || sums[0].Limited != h.job().Limited || sums[0].Escaped != nil || sums[0].Paused < all/2 || sums[0].Paused > all+time.Second/10 {
				t.Errorf("in %s: %+v", all, sums)
			}
			if a := s.answer(ask{Remove: new(h.job().Limited)}); a.Error != "" || len(s.jobs) != 0 {
				t.Errorf("released: %+v", a)
			}
			if in := h.in(h.group("/a")); !slices.Equal(in, []string{pid}) {
				t.Errorf("in the group are %q", in)
			}
			if _, err := os.Stat(h.cell("/a")); !os.IsNotExist(err) {
				t.Errorf("the cell: %v", err)
			}
			if jobs, err := Paced(h.dir); err != nil || len(jobs) != 0 {
				t.Errorf("on record: %+v, %v", jobs, err)
			}
			if a := s.answer(ask{Seen: new(h.job().Limited)}); !strings.Contains(a.Error, "does not pace cgroup /a") {
				t.Errorf("seen afterwards: %+v", a)
			}
		})
	}
}

// serve runs a pacer until the test ends.
func (h *fakeHost) serve() (Client, *server) { return h.serveBy(h.server()) }

func (h *fakeHost) serveBy(s *server) (Client, *server) {
	h.t.Helper()
	if err := s.watch(); err != nil {
		h.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	h.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			h.t.Error(err)
		}
		s.thaw()
		for _, g := range s.guards {
			g.end()
		}
	})
	return Client{State: h.dir}, s
}

// Who asks at the socket has a group held, changed and let go; who joins it is brought into its
// cell.
func TestAsking(t *testing.T) {
	for name, version := range map[string]cgroupfs.Version{"v1": cgroupfs.V1, "v2": cgroupfs.V2} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, version)
			first := h.sleeper("/a")
			c, _ := h.serve()
			if _, err := c.Hold(h.Group("/a"), &limit.Pacing{Count: CountWritten}); err != nil {
				t.Fatal(err)
			}
			jobs, err := Paced(h.dir)
			if err != nil || len(jobs) != 1 || jobs[0].WBPS != 1e6 || jobs[0].Pacing() == nil {
				t.Fatalf("on record: %+v, %v", jobs, err)
			}
			newcomer := h.sleeper("/a")
			h.until("who joined is in the cell", func() bool { return slices.Contains(h.in(h.cell("/a")), newcomer) })
			j := h.job()
			j.WBPS = 2e6
			if _, err := c.Add(j); err != nil {
				t.Fatal(err)
			}
			if jobs, err = Paced(h.dir); err != nil || len(jobs) != 1 || jobs[0].WBPS != 2e6 {
				t.Errorf("changed: %+v, %v", jobs, err)
			}
			if seen, err := c.Seen(j.Limited); err != nil || seen.Told {
				t.Errorf("seen: %+v, %v", seen, err)
			}
			w := c.Watcher(j.Limited)
			if err := w.Add(cgroupfs.Group{}, 0); err == nil || !strings.Contains(err.Error(), "cannot see writes to files of other groups") {
				t.Errorf("what escapes: %v", err)
			}
			if some, err := w.Escaped(0); !errors.Is(err, errBlind) || len(some) != 0 {
				t.Errorf("escaped: %v, %v", some, err)
			}
			if files, err := w.Files(0, nil); !errors.Is(err, errBlind) || len(files) != 0 || w.Remove(0) != nil {
				t.Errorf("files: %v, %v", files, err)
			}
			j.Count = CountEscaped
			if _, err := c.Add(j); err == nil || !strings.Contains(err.Error(), "no BPF here") {
				t.Errorf("counted by what escapes: %v", err)
			}
			if err := c.Follow(h.Group("/a"), nil); err != nil {
				t.Fatal(err)
			}
			if in := h.in(h.group("/a")); !slices.Contains(in, first) || !slices.Contains(in, newcomer) {
				t.Errorf("in the group are %q", in)
			}
			if err := c.Remove(j.Limited); err != nil {
				t.Errorf("removed again: %v", err)
			}
		})
	}
}

// A group whose owner keeps its limit is held again when it is there again, at the rate of its
// rule then. One that nobody keeps is forgotten.
func TestGoneAndBack(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	h.sleeper("/a")
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := h.serve()
	if _, err := c.Hold(h.Group("/a"), &limit.Pacing{KeptIn: []string{kept}}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(h.group("/a"), h.Root+"/was"); err != nil {
		t.Fatal(err)
	}
	lapsed := func(is bool) func() bool {
		return func() bool {
			jobs, err := Paced(h.dir)
			return err == nil && len(jobs) == 1 && (jobs[0].Lapsed != "") == is
		}
	}
	h.until("the record says that nothing is held", lapsed(true))
	h.fill(h.group("/a"))
	if err := os.WriteFile(h.group("/a")+"/io.max", []byte("8:0 rbps=max wbps=3000000 riops=max wiops=max\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := h.sleeper("/a")
	h.until("it is held again", lapsed(false))
	jobs, err := Paced(h.dir)
	if err != nil || jobs[0].WBPS != 3e6 {
		t.Errorf("at the rate of %+v, %v", jobs, err)
	}
	h.until("who is in it is in the cell", func() bool { return slices.Contains(h.in(h.cell("/a")), again) })
	if err := os.Rename(h.group("/a"), h.Root+"/was again"); err != nil {
		t.Fatal(err)
	}
	h.until("the record says so again", lapsed(true))
	if err := c.Forget("a"); err != nil {
		t.Fatal(err)
	}
	if jobs, err := Paced(h.dir); err != nil || len(jobs) != 0 {
		t.Errorf("forgotten: %+v, %v", jobs, err)
	}
}

// A guard that dies is replaced, and knows all cells.
func TestGuardsAreReplaced(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	h.sleeper("/a")
	s := h.server()
	if err := s.watch(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, g := range s.guards {
			g.end()
		}
	}()
	if err := s.add(h.job()); err != nil {
		t.Fatal(err)
	}
	dead, other := s.guards[0], s.guards[1]
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	h.until("the pacer has two", func() bool {
		if s.sleep(clockNow() + 10*time.Millisecond) {
			s.attend()
		}
		return !slices.Contains(s.guards, dead) && len(s.guards) == guardsMost
	})
	if !slices.Contains(s.guards, other) {
		t.Error("the other guard was replaced too")
	}
	frozen := filepath.Join(h.cell("/a"), "cgroup.freeze")
	if err := os.WriteFile(frozen, []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.beaten = clockNow() - 2*beatEvery
	s.beat(clockNow())
	for _, g := range s.guards { // as if the pacer had died
		if err := unix.Close(g.pipe); err != nil {
			t.Fatal(err)
		}
	}
	h.until("they let the group go", func() bool {
		text, err := os.ReadFile(frozen)
		return err == nil && strings.HasPrefix(string(text), "0")
	})
	for _, g := range s.guards {
		if err := g.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	s.guards = nil
}
