package pacer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// aLoan is a pacer with a group that has paid for 50 MB, of which 3 MB are charged again and wait
// at the rule.
func aLoan(t *testing.T) (h *fakeHost, s *server, p *paced, m *written, now time.Duration) {
	t.Helper()
	h = newHost(t, cgroupfs.V1)
	h.sleeper("/a")
	s = h.server()
	if err := s.add(h.job()); err != nil {
		t.Fatal(err)
	}
	p = s.of(h.job().Limited)
	m, now = p.meter.(*written), clockNow()
	if _, err := m.look(now, nil); err != nil {
		t.Fatal(err)
	}
	m.ledger.paid[0] = 50e6
	h.charge("3000000")
	if owes, err := m.look(now, nil); err != nil || owes != 0 || !m.ledger.wants() {
		t.Fatalf("owed is %.0f, %v; a loan is wanted: %v", owes, err, m.ledger.wants())
	}
	return h, s, p, m, now
}

// A loan that fails is tried again, and lends what is charged meanwhile as well: a group that
// syncs never waits for all of it once more.
func TestALoanThatFails(t *testing.T) {
	for name, broken := range map[string]func(t *testing.T, h *fakeHost, s *server) (mend func()){
		"no guard listens": func(_ *testing.T, _ *fakeHost, s *server) func() {
			s.guards = []*guard{{pipe: -1}}
			return func() { s.guards = nil }
		},
		"the kernel refuses the rule": func(t *testing.T, h *fakeHost, _ *server) func() {
			refuse := true
			if err := h.FS.Rehearse(func(file, line string) error {
				if refuse && filepath.Base(file) == ruleV1 {
					return unix.EIO
				}
				return h.write(file, line)
			}); err != nil {
				t.Fatal(err)
			}
			return func() { refuse = false }
		},
		"the lock cannot be had": func(t *testing.T, h *fakeHost, _ *server) func() {
			locks := filepath.Join(h.dir.Path(), "locks")
			if err := errors.Join(os.RemoveAll(locks), os.Mkdir(locks, 0o700)); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.Remove(locks); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, s, p, m, now := aLoan(t)
			mend := broken(t, h, s)
			if s.lend(p, now); len(s.loans) != 0 || h.rule() != "8:0 1000000" || !m.ledger.wants() {
				t.Fatalf("%d loans, the rule is %q; one is wanted still: %v", len(s.loans), h.rule(), m.ledger.wants())
			}
			mend()
			if s.lend(p, now); len(s.loans) != 0 {
				t.Error("it was tried again at once")
			}
			h.charge("50000000") // the rest of what is synced
			now += time.Millisecond
			if owes, err := m.look(now, nil); err != nil || owes != 0 {
				t.Fatalf("owed is %.0f, %v", owes, err)
			}
			now += retryAfter
			s.lend(p, now)
			if len(s.loans) != 1 || h.rule() == "8:0 1000000" {
				t.Fatalf("tried again: %d loans, the rule is %q", len(s.loans), h.rule())
			}
			s.repayDue(s.loans[0].until)
			if lent := s.lent(p, m, now)[blkdev.Number{Major: 8}]; lent < 49e6 || m.gates[blkdev.Number{Major: 8}].waits != 0 || m.ledger.wants() {
				t.Errorf("lent were %d bytes", lent)
			}
		})
	}
}

// While a process has not stopped, it may wait in the kernel for what is lent: the loan goes on, for
// as long as that is worth it.
func TestALoanGoesOn(t *testing.T) {
	h, s, p, _, now := aLoan(t)
	s.lend(p, now)
	if len(s.loans) != 1 {
		t.Fatal("nothing was lent")
	}
	first, most := s.loans[0].until, s.loans[0].most
	if want := first + 3*time.Second/loanPart; most != want {
		t.Errorf("it lasts until %s at most, want %s", most-now, want-now)
	}
	stops := func(state string) {
		h.Write(strings.TrimPrefix(h.cell("/a"), h.Root+"/")+"/freezer.state", state+"\n")
	}
	stops("FREEZING")
	s.repayDue(first)
	if len(s.loans) != 1 || s.loans[0].until != first+stillLook || p.waits != most || h.rule() == "8:0 1000000" {
		t.Fatalf("%d loans, until %s, the rule is %q", len(s.loans), s.loans[0].until-now, h.rule())
	}
	stops("FROZEN")
	if s.repayDue(first + stillLook); len(s.loans) != 0 || h.rule() != "8:0 1000000" || p.waits != 0 || p.due != first+stillLook {
		t.Errorf("all have stopped: %d loans, the rule is %q", len(s.loans), h.rule())
	}

	h, s, p, _, now = aLoan(t)
	s.lend(p, now)
	stops("FREEZING")
	s.repayDue(s.loans[0].most - 1)
	if len(s.loans) != 1 {
		t.Error("it has ended too early")
	}
	if s.repayDue(s.loans[0].most); len(s.loans) != 0 || h.rule() != "8:0 1000000" {
		t.Errorf("it has lasted too long: %d loans, the rule is %q", len(s.loans), h.rule())
	}
}

// A rule that cannot be had back is tried again, and not all the time: the pacer has others to look at.
func TestALoanThatCannotBeRepaid(t *testing.T) {
	h, s, p, _, now := aLoan(t)
	s.lend(p, now)
	refuse := true
	if err := h.FS.Rehearse(func(file, line string) error {
		if refuse && filepath.Base(file) == ruleV1 {
			return unix.EIO
		}
		return h.write(file, line)
	}); err != nil {
		t.Fatal(err)
	}
	end := s.loans[0].most
	if s.repayDue(end); len(s.loans) != 1 || s.repayBy(end+time.Hour) != end+retryAfter {
		t.Fatalf("%d loans; the next try is in %s", len(s.loans), s.repayBy(end+time.Hour)-end)
	}
	refuse = false
	if s.repayDue(end + retryAfter); len(s.loans) != 0 || h.rule() != "8:0 1000000" {
		t.Errorf("%d loans, the rule is %q", len(s.loans), h.rule())
	}
}

// What is charged when the rule is back waits there: it is lent anew.
func TestAfterALoan(t *testing.T) {
	h, s, p, m, now := aLoan(t)
	s.lend(p, now)
	if err := h.FS.Rehearse(func(file, line string) error {
		if filepath.Base(file) == ruleV1 { // the rule is had back
			h.charge("20000000")
		}
		return h.write(file, line)
	}); err != nil {
		t.Fatal(err)
	}
	end := s.loans[0].until
	if s.repayDue(end); len(s.loans) != 0 {
		t.Fatal("the loan has not ended")
	}
	if _, err := m.look(end, nil); err != nil || !m.ledger.wants() {
		t.Errorf("a loan of the rest is wanted: %v, %v", m.ledger.wants(), err)
	}
	if s.lend(p, end); len(s.loans) != 1 {
		t.Error("the rest is not lent")
	}
}
