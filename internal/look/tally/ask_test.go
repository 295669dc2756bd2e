package tally

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A lateWatcher answers when it is told to.
type lateWatcher struct {
	*played
	answers chan struct{}
}

func (w lateWatcher) Escaped(uint64) (map[blkdev.Number]uint64, error) {
	<-w.answers
	return map[blkdev.Number]uint64{disk: 0}, nil
}

// Looks do not wait for a watcher that answers late, and what it says then is of no use. weir says so if it
// does not know whether there was a burst. One that answers again is asked again.
func TestALateWatcher(t *testing.T) {
	burst := does{lasts: time.Second / 5, written: 300 * megabyte, escaped: 300 * megabyte}
	for name, c := range map[string]struct {
		again bool
		does  []does
		want  State
	}{
		"a burst":          {does: append(lines(60), burst), want: NotTold},
		"none":             {does: lines(60), want: Held},
		"it answers again": {again: true, does: append(lines(60), burst), want: NotHeld},
	} {
		p := play(false, true)
		w := lateWatcher{p, make(chan struct{})}
		p.watcher = w
		guard := time.AfterFunc(10*time.Second, func() { close(w.answers) })
		began := time.Now()
		for _, d := range lines(60) {
			p.does(d)
		}
		if took := time.Since(began); took > 5*time.Second || p.asked == nil || p.waited < askMost || p.waited > took {
			t.Fatalf("%s: the looks took %s, %s of it for the watcher", name, took, p.waited)
		}
		if c.again {
			late := p.asked
			w.answers <- struct{}{}
			p.watcher = p
			for deadline := time.Now().Add(10 * time.Second); len(late) == 0 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
		}
		for _, d := range c.does {
			p.does(d)
		}
		v := p.verdict()
		if v.State != c.want || (len(v.Doubts) > 0) != (c.want == NotTold) {
			t.Errorf("%s: %+v (%+v), want %s", name, v, v.Burst, c.want)
		}
		if guard.Stop() {
			close(w.answers)
		}
	}
}
