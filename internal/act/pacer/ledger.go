package pacer

import "time"

// A ledger has what a group of v1 owes the pacer. Each byte is to be paid for once: by waiting
// here, when it is made dirty, or in the kernel's throttle, when it is charged. Both let the
// group have its rate, so what the one has had the other does not give.
//
// Pages that the group's own fsync writes back are charged to its rule when they have been paid
// for here. What of that takes the throttle moments is paid for by the time that this gives the
// bucket. More than that is lent: see loan.
type ledger struct {
	paid  [2]float64    // in this keepFor, and in the one before
	since time.Duration // when this one began
	ahead float64       // was charged, and counted as written a moment later: see enter

	again float64       // was paid for, is charged again, and waits at the rule by now
	at    time.Duration // the last entry

	asked  float64 // was paid for and is charged again: the loan that is wanted, or under way
	unpaid float64 // what waited at the rule, was not paid for, and goes with it
	open   bool    // a loan is under way
	strict time.Duration
}

const (
	// keepFor is for how long it is kept at least, and for how long again at most: later the
	// kernel has written such pages back by itself (vm.dirty_expire_centisecs, 30 s).
	keepFor = 20 * time.Second
	// askLeast is what is lent for at least, as time of the rate. It is less than a bucket
	// holds.
	askLeast = 50 * time.Millisecond
	// strictFor is for how long after a loan all is paid for here, what the throttle has held too:
	// it begins anew with each change of a rule, and lets through a tenth of a second at once (a
	// writer with O_DSYNC got 1.9 times its limit in User-mode Linux).
	strictFor = time.Second
)

// enter enters what was written and what was charged since the last entry. owes is to be paid
// for here, taken is paid for in the throttle. least is what a loan is worth it for.
func (l *ledger) enter(written, charged, least float64, now time.Duration) (owes, taken float64) {
	if now-l.since > keepFor {
		l.paid, l.since = [2]float64{0, l.paid[0]}, now
	}
	through := least / askLeast.Seconds() * (now - l.at).Seconds() // the rule
	l.again = max(0, l.again-through)
	if !l.open {
		l.asked = max(0, l.asked-through)
	}
	ahead := l.ahead
	l.ahead, l.at = 0, now
	switch more := written - charged; {
	case written < 0: // files were cut off
		owes, taken = written, charged
	case more >= 0:
		owes, taken = max(0, more-ahead), charged
		l.paid[0] += owes
	default:
		again := min(-more, l.paid[0]+l.paid[1])
		l.spend(again)
		l.again += again
		// The rest was dirtied by others, or is direct and not counted yet.
		taken, l.ahead = charged-again, -more-again
	}
	if l.open || now < l.strict {
		owes, taken, l.again = owes+taken, 0, l.again+taken
	}
	if l.again >= least || l.open || l.asked > 0 {
		l.asked, l.again = l.asked+l.again, 0
	}
	return owes, taken
}

func (l *ledger) spend(bytes float64) {
	old := min(bytes, l.paid[1])
	l.paid[1] -= old
	l.paid[0] -= bytes - old
}

// wants reports whether a loan is to begin.
func (l *ledger) wants() bool { return l.asked > 0 && !l.open }

// saves is how long what is asked for would wait.
func (l *ledger) saves(rate float64) time.Duration {
	return time.Duration(l.asked / rate * float64(time.Second))
}

// begin begins a loan where so much waits.
func (l *ledger) begin(waits float64) { l.open, l.unpaid = true, max(0, waits-l.asked) }

// end ends it, and returns what went with it and is to be paid for here.
func (l *ledger) end(now time.Duration) (owes float64) {
	owes = l.unpaid
	l.asked, l.unpaid, l.open, l.strict = 0, 0, false, now+strictFor
	return owes
}

// A gate is the kernel's rule on writes to one device, and what waits there.
type gate struct {
	rate    float64 // bytes a second; 0: there is no rule
	known   bool    // whether it was seen what was charged before the gate was there, which is nobody's to pay
	charged uint64
	own     uint64  // of that, what came from no other gate: see written.charge
	waits   float64 // what was charged and cannot have gone through yet
	lent    float64 // what has gone past it in loans
	at      time.Duration
}

// charge takes in the kernel's count, which goes up before anything waits, and returns by how
// much.
func (g *gate) charge(count uint64, now time.Duration) (more float64) {
	more = float64(max(count, g.charged) - g.charged)
	g.waits = max(0, g.waits-g.rate*(now-g.at).Seconds()) + more
	g.charged, g.at = count, now
	return more
}
