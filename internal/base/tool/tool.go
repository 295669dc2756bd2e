// Package tool runs programs that weir asks for an answer, such as virsh and mkfs. One that does not
// end, starts others that do not, or never stops to write, keeps weir no longer than its context, and
// fills no memory.
package tool

import (
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// outMost bounds what a program may write to one of its streams, in bytes.
const outMost = 1 << 20

// streamsMost bounds the wait for what a program has started and left behind with its streams.
const streamsMost = time.Second

// errLong says that a program has written more than outMost. To make it before main would take a
// twentieth of what weir's packages take then.
func errLong() error { return fmt.Errorf("it writes more than %d bytes", outMost) }

// Run runs a program to its end, and returns what it has written to its standard output and standard
// error. The command has a context that bounds its time (exec.CommandContext), and no streams yet.
func Run(cmd *exec.Cmd) (out, said []byte, err error) {
	var one, two text
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &one, &two, streamsMost
	err = cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it has ended well, and something else has its streams
	}
	if one.long || two.long {
		err = errLong()
	}
	return one.all, two.all, err
}

// text takes what a program writes. The program gets SIGPIPE once that is too much.
type text struct {
	all  []byte
	long bool
}

func (t *text) Write(b []byte) (int, error) {
	if t.long = t.long || len(t.all)+len(b) > outMost; t.long {
		return 0, errLong()
	}
	t.all = append(t.all, b...)
	return len(b), nil
}
