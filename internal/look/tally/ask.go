package tally

import (
	"errors"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// askMost is how long a look waits for the watcher. That may be a pacer that is busy, stopped, or
// being started again, and the next looks are not to be late for it.
const askMost = lookMost

// errLate says that the watcher has not answered in time.
var errLate = errors.New("what counts writes past the limit has not answered in time")

// An answer is what a watcher has seen escape.
type answer struct {
	escaped map[blkdev.Number]uint64
	err     error
}

// ask asks the watcher what has escaped by now. A late answer is of no use: it tells of a later
// time. Until it comes, nothing else is asked, and who ends the tally waits for it.
func (t *Tally) ask() (map[blkdev.Number]uint64, error) {
	if t.asked != nil {
		select {
		case <-t.asked:
			t.asked = nil
		default:
			return nil, errLate
		}
	}
	asked, began, late := make(chan answer, 1), time.Now(), time.NewTimer(askMost)
	defer late.Stop()
	go func() {
		escaped, err := t.watcher.Escaped(t.id)
		asked <- answer{escaped, err}
	}()
	select {
	case a := <-asked:
		t.waited += time.Since(began)
		return a.escaped, a.err
	case <-late.C:
		t.waited += time.Since(began)
		t.asked = asked
		return nil, errLate
	}
}
