package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/base/background"
)

// KeeperArg is the argument that runs weir as the keeper of a scope: see Keep.
const KeeperArg = background.Keeper

// A keeper is a process in a scope that waits until weir releases it. systemd cannot make a
// scope without a process, and removes the scope with its counters when its last process ends.
// So the keeper exists before the command, and until weir has read the counters. It waits on a
// pipe, so it ends when weir does, however weir ends, unless weir has told it to linger.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// What weir tells a keeper, after the line with the scope's name: that it may end, must linger,
// or must wait. If nothing comes, weir has died.
const (
	endWord  = "end"
	stayWord = "stay"
	waitWord = "wait " // and for how long: for what is queued in its group
)

// Keep runs a keeper.
func Keep(stdin io.Reader) {
	began := now()
	text, err := io.ReadAll(stdin)
	if err != nil {
		return
	}
	switch scope, word, _ := strings.Cut(string(text), "\n"); {
	case word == stayWord:
		_ = linger() // nobody is there to be told
	case strings.HasPrefix(word, waitWord):
		if d, err := time.ParseDuration(strings.TrimPrefix(word, waitWord)); err == nil {
			_ = wait(d)
		}
	case word == "" && scope != "":
		awaitScope(scope)
		_ = wait(place{Began: began, Linger: true}.drainsHere())
	}
}

const (
	scopeMax  = 10 * time.Second
	scopeLook = 10 * time.Millisecond
)

// awaitScope waits until it is in the scope, which systemd may still be making. If a process
// exits while it is moved there, systemd skips it (cgroup v2 does not report that). The scope
// would then stay for good, empty and unnoticed.
func awaitScope(scope string) {
	for began := time.Now(); time.Since(began) < scopeMax; time.Sleep(scopeLook) {
		groups, err := os.ReadFile("/proc/self/cgroup")
		if err != nil || strings.Contains(string(groups), "/"+scope+"\n") {
			return
		}
	}
}

// newKeeper starts the keeper of a scope that will be made next.
func newKeeper(scope string) (*keeper, error) {
	cmd := background.Command(KeeperArg) // Ctrl-C is not for it
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the scope's keeper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the scope's keeper: %w", err)
	}
	k := &keeper{cmd: cmd, pipe: pipe}
	if _, err := io.WriteString(pipe, scope+"\n"); err != nil {
		k.dismiss()
		return nil, fmt.Errorf("tell the scope's keeper its name: %w", err)
	}
	return k, nil
}

func (k *keeper) dismiss() {
	_, _ = io.WriteString(k.pipe, endWord) // it may have ended
	_ = k.pipe.Close()
	_ = k.cmd.Wait() // its status says nothing
}

// abandon lets go of the keeper, if weir does not know whether systemd makes the scope. The
// keeper ends in the scope, or when it is not moved there.
func (k *keeper) abandon() error { return errors.Join(k.pipe.Close(), k.cmd.Process.Release()) }

// leave makes the keeper linger after weir's end.
func (k *keeper) leave() error { return k.tell(stayWord) }

// wait makes the keeper stay for some time after weir's end.
func (k *keeper) wait(d time.Duration) error { return k.tell(waitWord + d.String()) }

func (k *keeper) tell(word string) error {
	_, err := io.WriteString(k.pipe, word)
	return errors.Join(err, k.pipe.Close(), k.cmd.Process.Release())
}
