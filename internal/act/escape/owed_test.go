package escape

import (
	"testing"
	"time"
)

const (
	rate = 10_000_000
	step = time.Millisecond
)

func yes() bool { return true }

// What nothing speaks for is not owed, until something does.
func TestUnbelieved(t *testing.T) {
	o := NewOwed(rate, 1000, 0)
	if owed, _ := o.Take(5000, 0, step, func() bool { return false }); owed != 0 || o.Active(2*step) {
		t.Errorf("%.0f bytes are owed that nobody believes in", owed)
	}
	if owed, _ := o.Take(100, 0, 2*step, yes); owed != 5100 {
		t.Errorf("%.0f bytes are owed, want 5100", owed)
	}
}

// A group that dirties only its own owes no more than its bucket gets, though the kernel
// charges in bursts, and a little more than its rate.
func TestOwnIsNotOwed(t *testing.T) {
	o := NewOwed(rate, rate/10, 0)
	level, lowest := 0.0, 0.0
	for i := range 60_000 {
		now := time.Duration(i+1) * step
		charged := 0.0
		if i%100 == 0 {
			charged = 1.05 * rate / 10
		}
		owed, given := o.Take(0, charged, now, yes)
		level += rate*step.Seconds() - owed - given
		level = min(level, rate/10)
		lowest = min(lowest, level)
	}
	if lowest < -1 {
		t.Errorf("the bucket was at %.0f bytes", lowest)
	}
}

// What escapes below the threshold is not owed; once it is more, all of it is.
func TestThreshold(t *testing.T) {
	o := NewOwed(rate, 1000, 0)
	var got []float64
	for i, escaped := range []float64{400, 500, 200, 50} {
		owed, _ := o.Take(escaped, 0, time.Duration(i)*step, yes)
		got = append(got, owed)
	}
	if want := []float64{0, 0, 1100, 50}; got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("owed %v, want %v", got, want)
	}
	if owed, _ := o.Take(400, 0, 2*time.Second, yes); owed != 0 {
		t.Error("it is owed at once after a second without any")
	}
}

// Own and escaped together take what the bucket gets.
func TestOneBucket(t *testing.T) {
	o := NewOwed(rate, rate/10, 0)
	level, escaped, charged := 0.0, 0.0, 0.0
	for i := range 10_000 {
		now := time.Duration(i+1) * step
		own, foreign := 0.0, 0.0
		if i%100 == 0 {
			own = rate / 20 // half of the limit
		}
		if level >= 0 { // it is not stopped
			foreign = 65536
		}
		charged, escaped = charged+own, escaped+foreign
		owed, given := o.Take(foreign, own, now, yes)
		level = min(level+rate*step.Seconds()-owed-given, rate/10)
	}
	if all := (escaped + charged) / (10 * rate); all < 0.95 || all > 1.05 {
		t.Errorf("own and escaped together were %.3f of the limit", all)
	}
}

// What was in doubt is taken back first of what nobody owes yet.
func TestBack(t *testing.T) {
	o := NewOwed(1e6, 100e3, 0)
	if owed, _ := o.Take(60e3, 0, time.Millisecond, func() bool { return true }); owed != 0 {
		t.Fatalf("%.0f are owed below the threshold", owed)
	}
	if rest := o.Back(200e3); rest != 140e3 {
		t.Errorf("%.0f of 200,000 were owed, want 140,000", rest)
	}
	if owed, _ := o.Take(110e3, 0, 2*time.Millisecond, func() bool { return true }); owed != 110e3 {
		t.Errorf("%.0f are owed, want 110,000: nothing waits", owed)
	}
}
