package pacer

import (
	"time"

	"github.com/weir-io/weir/internal/linux/process"
)

// exits have the kernel tell what processes have done by their end, while some come from elsewhere: such a
// process can write and end between two looks, with no parent in the group that would get what it wrote.
type exits struct {
	tell  *process.Exits // nil: the kernel cannot tell
	until time.Duration  // when it need not any more
}

// exitsFor is how long after a process has come the kernel is to tell. It costs each end of a process on
// the host some microseconds.
const exitsFor = 2 * time.Second

func openExits() exits {
	tell, _ := process.OpenExits() // else nobody tells
	return exits{tell: tell}
}

// listen is called when a process has come.
func (e *exits) listen(now time.Duration) { e.until = now + exitsFor }

// attend takes in who has ended.
func (e *exits) attend(now time.Duration) {
	if now < e.until {
		_ = e.tell.Listen() // without, what is written right before an end is missed
		e.tell.Read()
		return
	}
	_ = e.tell.Ignore() // it is tried again
}

func (e *exits) close() { _ = e.tell.Close() } // nothing was written
