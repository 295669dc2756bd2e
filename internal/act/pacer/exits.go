package pacer

import (
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/linux/process"
)

// exits have the kernel tell what processes have done by their end, while some come from elsewhere: such a
// process can write and end between two looks, with no parent in the group that would get what it wrote.
type exits struct {
	tell  *process.Exits // nil: the kernel cannot tell
	until time.Duration  // when it need not any more
	// missed is what is not counted, and why; empty: all is.
	missed string
}

// exitsFor is how long after a process has come the kernel is to tell. It costs each end of a process on
// the host some microseconds.
const exitsFor = 2 * time.Second

func openExits() exits {
	tell, err := process.OpenExits()
	return exits{tell: tell, missed: uncounted(err)}
}

// uncounted says what is not counted if the kernel does not tell; nil: it does.
func uncounted(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("what a process writes right before its end is not counted, unless another process of the group waits for it (%s)", brief(err))
}

// Uncounted says what a pacer that this process starts does not count, and why; empty: it counts all. A pacer can do no
// more than who has started it.
func Uncounted() string {
	e := openExits()
	e.close()
	return e.missed
}

// listen is called when a process has come.
func (e *exits) listen(now time.Duration) { e.until = now + exitsFor }

// attend takes in who has ended.
func (e *exits) attend(now time.Duration) {
	if now < e.until {
		if e.tell != nil {
			e.missed = uncounted(e.tell.Listen()) // it is tried again
		}
		e.tell.Read()
		return
	}
	_ = e.tell.Ignore() // it is tried again
}

func (e *exits) close() { _ = e.tell.Close() } // nothing was written
