package pacer

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A modelled group writes at modelSpeed whenever neither its owner nor the pacer has it paused. Time
// passes only while the pacer sleeps (package synctest).
type modelled struct {
	h             *fakeHost
	p             *paced
	pid           string // of its process
	folio         folios
	written, told float64       // in bytes
	at            time.Duration // until when its writes are in written
	goes          bool          // since then
	first         time.Duration // when it went on first after its owner's pause
	signalled     bool
}

const (
	modelSpeed = 1e9                   // bytes a second
	modelLate  = 20 * time.Microsecond // a timer is
)

func (m *modelled) look(time.Duration, []int) (unseen float64, err error) {
	unseen = m.written - m.told
	m.told = m.written
	return unseen, nil
}

func (m *modelled) joined()          {}
func (m *modelled) charged() float64 { return 0 }
func (m *modelled) on(Job)           {}
func (m *modelled) close()           {}
func (m *modelled) parts() *folios   { return &m.folio }
func (m *modelled) tell(now time.Duration) (float64, error) {
	return m.folio.start(now, func(Parts) (Counter, error) { return nil, errLoading })
}

// pass has it write until now, and sees whether it goes on.
func (m *modelled) pass() {
	now := clockNow()
	if m.goes {
		m.written += modelSpeed * (now - m.at).Seconds()
	}
	m.at = now
	home, cell := m.h.thawed(m.h.group("/a")), m.h.thawed(m.h.cell("/a"))
	if m.goes = home && (cell || len(m.h.in(m.h.group("/a"))) > 0); m.goes && m.first == 0 {
		m.first = now
	}
}

// thawed reports whether a group's own file says that its processes go on.
func (h *fakeHost) thawed(dir string) bool {
	h.t.Helper()
	file, line := "cgroup.freeze", "0"
	if strings.Contains(dir, "/freezer") {
		file, line = "freezer.state", "THAWED"
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text)) == line
}

// pause is what the owner of /a does, and what the kernel then says.
func (h *fakeHost) pause(stop bool) {
	h.t.Helper()
	flag := map[bool]string{false: "0\n", true: "1\n"}[stop]
	files := map[string]string{"cgroup.freeze": flag, "cgroup.events": "populated 1\nfrozen " + flag}
	if len(h.trees) > 1 {
		files = map[string]string{"freezer.state": map[bool]string{false: "THAWED\n", true: "FROZEN\n"}[stop], "freezer.self_freezing": flag,
			filepath.Base(h.cell("/a")) + "/freezer.parent_freezing": flag}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(h.group("/a"), name), []byte(text), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
}

// pace has the pacer do what is due until a moment, or until something is so.
func (m *modelled) pace(until time.Duration, may pace, enough func() bool) {
	m.h.t.Helper()
	for m.pass(); clockNow() < until && !enough(); m.pass() {
		time.Sleep(min(m.p.due, until) - clockNow() + modelLate)
		m.pass()
		if now := clockNow(); now >= m.p.due {
			if err := m.p.step(now, may); err != nil {
				m.h.t.Fatal(err)
			}
		}
	}
}

func never() bool { return false }

// paces are what the pacer's share of a processor allows: one that keeps up, and one that does not.
var paces = map[string]pace{
	"calm": {cycle: cycleLeast, lull: cycleLeast, soon: time.Millisecond, eager: true, greet: true},
	"busy": {cycle: cycleMost, lull: 10 * time.Millisecond, soon: 10 * time.Millisecond},
}

// moments are points in the pacer's work at which an owner may pause a group.
var moments = map[string]func(m *modelled, may pace){
	"running": func(m *modelled, may pace) { m.pace(hence(), may, func() bool { return !m.p.stopped }) },
	"stopped": func(m *modelled, may pace) { m.pace(hence(), may, func() bool { return m.p.stopped }) },
	"in debt": func(m *modelled, may pace) {
		m.written += 3e6
		m.pace(hence(), may, func() bool { return m.p.stopped && m.p.settled })
	},
	"lent": func(m *modelled, may pace) {
		m.p.waits = clockNow() + loanFor
		if err := m.p.halt(clockNow()); err != nil {
			m.h.t.Fatal(err)
		}
	},
	"in doubt": func(m *modelled, may pace) {
		m.folio = folios{excess: 1e9, load: func() (Parts, error) { return nil, errLoading }}
		m.pace(hence(), may, func() bool { return m.p.waits > clockNow() })
	},
	"taking a signal": func(m *modelled, may pace) {
		m.written += 3e6
		m.pace(hence(), may, func() bool { return m.p.stopped && m.p.settled })
		m.signalled = true
		m.signal(unix.SIGTERM)
		m.pace(hence(), may, func() bool { return m.p.courtesy.whom != 0 })
	},
	"got another": func(m *modelled, may pace) {
		m.h.put(m.pid, "/a") // out of the cell again
		m.p.roster.arrived, m.p.due = true, clockNow()
	},
}

func hence() time.Duration { return clockNow() + time.Minute }

func (m *modelled) signal(s unix.Signal) {
	m.h.t.Helper()
	pid, err := strconv.Atoi(m.pid)
	if err != nil {
		m.h.t.Fatal(err)
	}
	if err := unix.Kill(pid, s); err != nil {
		m.h.t.Fatal(err)
	}
}

// An owner's pause counts as time in which debts are paid, whenever it begins. After it the group goes on
// as soon as what is left is paid, and does not write for seconds of its limit before the pacer looks.
// The pacer leaves the owner's file alone, and moves nobody who could not go on.
func TestOwnersPause(t *testing.T) {
	lengths := []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}
	for often, may := range paces {
		for _, length := range lengths {
			for point, come := range moments {
				t.Run(fmt.Sprintf("v1/%s/%s/%s", point, often, length), func(t *testing.T) { ownersPause(t, cgroupfs.V1, come, may, length) })
			}
			t.Run(fmt.Sprintf("v2/running/%s/%s", often, length), func(t *testing.T) { ownersPause(t, cgroupfs.V2, moments["running"], may, length) })
		}
	}
}

func ownersPause(t *testing.T, version cgroupfs.Version, come func(*modelled, pace), may pace, length time.Duration) {
	model(t, version, func(m *modelled) {
		m.pace(clockNow()+500*time.Millisecond, may, never)
		if m.p.stops == 0 || m.p.fast == 0 {
			m.h.t.Fatalf("it was stopped %d times", m.p.stops)
		}
		come(m, may)
		m.ownersPause(may, length)
	})
}

// model has a group paced in which a modelled process is.
func model(t *testing.T, version cgroupfs.Version, do func(*modelled)) {
	t.Helper()
	h := newHost(t, version)
	pid := h.sleeper("/a")
	m := &modelled{h: h, pid: pid}
	m.signal(unix.SIGSTOP) // as a frozen one, it takes no other signal
	h.until("it stops", func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		return err == nil && strings.Contains(string(text), ") T ")
	})
	synctest.Test(t, func(t *testing.T) {
		h.t = t
		time.Sleep(time.Hour - clockNow()) // at first it is less than 0
		s := h.server()
		if err := s.add(h.job()); err != nil {
			t.Fatal(err)
		}
		m.p = s.of(h.job().Limited)
		m.p.meter = m
		do(m)
	})
}

func (m *modelled) ownersPause(may pace, length time.Duration) {
	h, t := m.h, m.h.t
	t.Helper()
	h.pause(true)
	m.pass()
	began := clockNow()
	b := m.p.bucket
	b.fill(began)
	b.take(m.written - m.told)
	paid, written, paused := began+max(0, b.until(0), m.p.waits-began, m.folio.late-began), m.written, m.p.paused
	m.pace(began+length, may, never)
	if m.written != written || h.thawed(h.group("/a")) {
		t.Fatalf("paused by its owner it wrote %.0f bytes; paused still: %t", m.written-written, !h.thawed(h.group("/a")))
	}
	if most := max(0, paid-began) + max(gatherEvery, 2*may.cycle); m.p.sum(clockNow())-paused > most {
		t.Errorf("the pacer is said to have paused it for %s of that, which owed %s", m.p.sum(clockNow())-paused, most)
	}
	m.signal(unix.SIGCONT) // it takes its signal
	h.pause(false)
	ended := clockNow()
	m.first = 0
	m.pass()
	m.pace(ended+time.Minute, may, func() bool { return m.first != 0 })
	if late := m.first - max(ended, paid); late > max(2*may.lull, may.cycle)+settleTime {
		t.Errorf("it goes on %s after the pause, and %s after it has paid", m.first-ended, late)
	}
	// What is saved up, and what comes meanwhile.
	m.pace(m.first+gatherEvery, may, never)
	most := 1.2e6 * (gatherEvery + depthBusy).Seconds()
	if m.signalled { // others go on until its end is taken note of
		most += modelSpeed * takeLeast.Seconds()
	}
	if m.written-written > most {
		t.Errorf("it writes %.0f bytes at once, want at most %.0f", m.written-written, most)
	}
}

// While its owner has it paused a process is not resumed for a signal, which it could not take. After that it is.
func TestNoCourtesyInAnOwnersPause(t *testing.T) {
	model(t, cgroupfs.V1, func(m *modelled) {
		may := paces["calm"]
		moments["in debt"](m, may)
		m.h.pause(true)
		m.signal(unix.SIGTERM)
		resumed := func() bool { return m.p.courtesy.whom != 0 }
		if m.pace(clockNow()+time.Second, may, resumed); resumed() || !m.p.stopped {
			m.h.t.Error("it is resumed in its owner's pause")
		}
		m.h.pause(false)
		if m.pace(clockNow()+time.Second, may, resumed); !resumed() {
			m.h.t.Error("it is not resumed after that")
		}
	})
}

// A newcomer whom its owner has not paused, as its group of the freezer is another one, goes on at once.
func TestANewcomerInAnOwnersPause(t *testing.T) {
	model(t, cgroupfs.V1, func(m *modelled) {
		may := paces["calm"]
		m.pace(clockNow()+500*time.Millisecond, may, never)
		m.h.pause(true)
		if m.pace(clockNow()+time.Second, may, never); !m.p.stopped || !m.p.joined {
			m.h.t.Fatal("it is not paused with its owner's pause")
		}
		pid := m.h.sleeper("/a")
		m.h.fill(m.h.group("/b"))
		m.h.Write("proc/"+pid+"/cgroup", "2:freezer:/b\n1:blkio:/a\n")
		if err := m.h.move(m.h.group("/b"), pid); err != nil {
			m.h.t.Fatal(err)
		}
		m.p.roster.arrived, m.p.due = true, clockNow()
		m.pace(clockNow()+10*time.Millisecond, may, func() bool { return !m.p.stopped })
		if cell := filepath.Join(m.h.group("/b"), filepath.Base(m.h.cell("/a"))); !m.h.thawed(cell) || len(m.h.in(cell)) != 1 {
			m.h.t.Errorf("in the cell of the newcomer are %q; it goes on: %t", m.h.in(cell), m.h.thawed(cell))
		}
	})
}

// A group that goes meanwhile is noticed.
func TestAGroupGoesInAnOwnersPause(t *testing.T) {
	model(t, cgroupfs.V2, func(m *modelled) {
		may := paces["calm"]
		m.pace(clockNow()+500*time.Millisecond, may, never)
		m.h.pause(true)
		m.pace(clockNow()+time.Second, may, never)
		if err := os.RemoveAll(m.h.group("/a")); err != nil {
			m.h.t.Fatal(err)
		}
		time.Sleep(2 * gatherEvery)
		if err := m.p.step(clockNow(), may); !cgroupfs.IsGone(err) {
			m.h.t.Errorf("%v", err)
		}
	})
}
