package launch

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// KeeperArg makes weir the keeper of a scope, and nothing else: see Keep.
const KeeperArg = "__keep"

// A keeper is a process in a scope that waits for its weir to let it go. A scope
// cannot be made around nothing, and systemd removes it, counters and all, when its
// last process ends: the keeper is there before the command, and until the counters
// have been read. It hangs on a pipe, so it ends when weir does, however that ends;
// unless weir has told it to linger.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// stayWord tells a keeper to linger.
const stayWord = "stay"

// Keep is the keeper's whole life.
func Keep(stdin io.Reader) {
	if text, err := io.ReadAll(stdin); err == nil && string(text) == stayWord {
		_ = linger() // nobody is there to be told
	}
}

func newKeeper() (*keeper, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"weir", KeeperArg}
	cmd.Dir = "/"                                         // it holds on to no file system
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the scope's keeper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the scope's keeper: %w", err)
	}
	return &keeper{cmd: cmd, pipe: pipe}, nil
}

func (k *keeper) dismiss() {
	_ = k.pipe.Close()
	_ = k.cmd.Wait() // its status says nothing
}

// leave lets the keeper linger after weir's end.
func (k *keeper) leave() error {
	_, err := io.WriteString(k.pipe, stayWord)
	return errors.Join(err, k.pipe.Close(), k.cmd.Process.Release())
}
