package haste

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A thread that takes more than its share takes its turn like others until the window ends, also if it waits for work by
// then; one that works a little runs in real time always.
func TestAThreadHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var spent time.Duration
		realTime, switches := false, 0
		thread := Thread{spent: func() time.Duration { return spent }, schedule: func(_ int, is bool) error {
			if is == realTime {
				t.Errorf("at %v it is made what it is: real time %v", spent, is)
			}
			realTime, switches = is, switches+1
			return nil
		}}
		if err := thread.Begin(); err != nil || !realTime {
			t.Fatalf("%v, real time %v", err, realTime)
		}
		work := func(took time.Duration) {
			time.Sleep(took)
			spent += took
			thread.Pace()
		}
		for range 100 { // a tenth of the time
			work(time.Millisecond)
			time.Sleep(9 * time.Millisecond)
		}
		if switches != 1 {
			t.Errorf("%d switches of one that works a little", switches)
		}
		time.Sleep(shareWindow)
		work(0)
		began, before := time.Now(), spent
		for realTime && spent-before < shareWindow {
			work(time.Millisecond)
		}
		if took := spent - before; took < shareMost || took > shareMost+2*time.Millisecond {
			t.Errorf("it had %v", took)
		}
		work(10 * time.Millisecond)
		if realTime {
			t.Error("it has its share twice")
		}
		time.Sleep(shareWindow) // nobody calls it
		synctest.Wait()
		if !realTime {
			t.Errorf("it rests still, after %v", time.Since(began))
		}
		for time.Since(began) < 10*shareWindow { // all the time
			work(time.Millisecond)
		}
		if n := switches / 2; n < 9 || n > 11 {
			t.Errorf("%d rests in 10 windows", n)
		}
		thread.End()
		time.Sleep(shareWindow)
		synctest.Wait()
		if realTime {
			t.Error("it runs in real time after its end")
		}
	})
}

// Without the right to it a thread goes on without real time.
func TestAThreadMayNot(t *testing.T) {
	no := errors.New("no")
	thread := Thread{spent: func() time.Duration { return time.Hour }, schedule: func(int, bool) error { return no }}
	if err := thread.Begin(); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	thread.Pace()
	thread.End()
	(*Thread)(nil).Pace()
}
