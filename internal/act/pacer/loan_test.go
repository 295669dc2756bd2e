package pacer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

func (h *fakeHost) rule() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.Root, h.trees[0], "a", ruleV1))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// charge has the kernel charge so many bytes of writes to the group.
func (h *fakeHost) charge(bytes string) {
	h.Write(h.trees[0]+"/a/blkio.throttle.io_service_bytes", "8:0 Write "+bytes+"\n8:0 Total "+bytes+"\nTotal "+bytes+"\n")
}

// What was paid for, and waits at the kernel's rule again, is lent: the rule is higher for a moment,
// in which the group is paused. After it the rule is what it was, and nothing waits there.
func TestLoan(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	h.sleeper("/a")
	s := h.server()
	if err := s.add(h.job()); err != nil {
		t.Fatal(err)
	}
	p := s.of(h.job().Limited)
	m := p.meter.(*written)
	sda := blkdev.Number{Major: 8}
	now := clockNow()
	if _, err := m.look(now, nil); err != nil {
		t.Fatal(err)
	}
	if s.lend(p, now); len(s.loans) != 0 {
		t.Fatal("a loan that nobody wants")
	}
	m.ledger.paid[0] = 5e6 // was paid for here, and then the group's fsync writes it
	h.charge("3000000")
	if owes, err := m.look(now, nil); err != nil || owes != 0 || m.gates[sda].waits != 3e6 {
		t.Fatalf("owed is %.0f, %v; at the rule wait %.0f", owes, err, m.gates[sda].waits)
	}
	if err := p.set(false); err != nil {
		t.Fatal(err)
	}
	s.lend(p, now)
	if len(s.loans) != 1 || h.rule() == "8:0 1000000" || !p.stopped || p.waits <= now || s.repayBy(now+time.Hour) != s.loans[0].until {
		t.Fatalf("%d loans, the rule is %q, paused %v", len(s.loans), h.rule(), p.stopped)
	}
	if lent := s.lent(p, m, now); lent[sda] != 3e6 {
		t.Errorf("lent meanwhile: %v", lent)
	}
	if s.lend(p, now); len(s.loans) != 1 {
		t.Error("a second loan before the first has ended")
	}
	s.repayDue(now)
	if len(s.loans) != 1 {
		t.Error("it has ended too early")
	}
	end := s.loans[0].until
	broken := errors.New("I/O error")
	refuse := true
	if err := h.FS.Rehearse(func(file, line string) error {
		if refuse {
			return broken
		}
		return h.write(file, line)
	}); err != nil {
		t.Fatal(err)
	}
	if s.repayDue(end); len(s.loans) != 1 {
		t.Error("a loan is forgotten whose rule is still high")
	}
	refuse = false
	s.repayDue(end)
	if len(s.loans) != 0 || h.rule() != "8:0 1000000" || p.waits != 0 || m.gates[sda].waits != 0 {
		t.Errorf("after it: %d loans, the rule is %q, at it wait %.0f", len(s.loans), h.rule(), m.gates[sda].waits)
	}
	through := uint64(1e6 * (end - now).Seconds()) // by the rule meanwhile
	if lent := s.lent(p, m, now)[sda]; lent > 3e6 || lent < 3e6-through-1 {
		t.Errorf("lent in all: %d", lent)
	}
	if m.ledger.strict <= now {
		t.Error("what the throttle lets through at once after a loan is not counted")
	}
}

// Who is let go repays first; a dead pacer's loan is repaid when the group is paced again.
func TestLoansAreRepaid(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	s := h.server()
	if err := s.add(h.job()); err != nil {
		t.Fatal(err)
	}
	p := s.of(h.job().Limited)
	m := p.meter.(*written)
	m.ledger.asked = 2e6
	s.lend(p, clockNow())
	high := h.rule()
	if high == "8:0 1000000" {
		t.Fatal("nothing was lent")
	}
	if err := s.drop(p); err != nil || h.rule() != "8:0 1000000" || len(s.loans) != 0 {
		t.Errorf("let go: %v; the rule is %q", err, h.rule())
	}
	h.Write(h.trees[0]+"/a/"+ruleV1, high+"\n")
	if err := s.add(h.job()); err != nil || h.rule() != "8:0 1000000" {
		t.Errorf("taken over: %v; the rule is %q", err, h.rule())
	}
	h.Write(h.trees[0]+"/a/"+ruleV1, high+"\n")
	if err := h.job().Release(h.FS); err != nil || h.rule() != "8:0 1000000" {
		t.Errorf("released by another weir: %v; the rule is %q", err, h.rule())
	}
}

// A frozen group stays as long as a pacer runs on v1, and no longer.
func TestKey(t *testing.T) {
	h := newHost(t, cgroupfs.V1)
	if err := turnKey(h.FS); err != nil {
		t.Fatal(err)
	}
	is(t, h.group(keyName)+"/freezer.state", "FROZEN\n")
	if err := turnKey(h.FS); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := removeKey(h.FS); err != nil {
		t.Error(err)
	}
	if err := removeKey(h.FS); err != nil {
		t.Errorf("again: %v", err)
	}
	v2 := newHost(t, cgroupfs.V2)
	if err := errors.Join(turnKey(v2.FS), removeKey(v2.FS)); err != nil {
		t.Errorf("on v2, where there is none: %v", err)
	}
}

// Somebody else's group in the place of a cell is emptied and made anew, because its owner could
// let go who is in it.
func TestAnothersCell(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	pid := h.sleeper("/a")
	theirs := h.cell("/a")
	h.fill(theirs)
	other := h.sleeper("/a/" + filepath.Base(theirs))
	if err := os.Chown(theirs+"/cgroup.freeze", 1000, 1000); err != nil {
		t.Fatal(err)
	}
	s := h.server()
	if err := s.add(h.job()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(theirs + "/cgroup.freeze")
	if err != nil {
		t.Fatal(err)
	}
	if !ownedByRoot(info) || len(h.in(theirs)) != 2 || len(h.in(h.group("/a"))) != 0 {
		t.Errorf("in the cell are %q, of %q and %q", h.in(theirs), pid, other)
	}
}

// One pacer has the groups. Another that starts gives up.
func TestTakeOver(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	lock, err := takeOver(h.dir)
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	if second, err := takeOver(h.dir); err != nil || second != nil {
		t.Errorf("a second one: %v, %v", second, err)
	}
	lock.Unlock()
}
