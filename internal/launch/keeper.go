package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/background"
)

// KeeperArg makes weir the keeper of a scope, and nothing else: see Keep.
const KeeperArg = background.Keeper

// A keeper is a process in a scope that waits for its weir to let it go. A scope
// cannot be made around nothing, and systemd removes it, counters and all, when its
// last process ends: the keeper is there before the command, and until the counters
// have been read. It hangs on a pipe, so it ends when weir does, however that ends;
// unless weir has told it to linger.
type keeper struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// What a keeper is told, after the line with its scope's name: that it may end, that it is
// to linger, or to wait. Without a word its weir has died.
const (
	endWord  = "end"
	stayWord = "stay"
	waitWord = "wait " // and for how long: for what is queued in its group
)

// Keep is the keeper's whole life.
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

// awaitScope waits to be in the scope, which systemd may be making. A process that is
// ending as it is moved there is passed over (cgroup v2 says nothing of that), and the
// scope would stay for good: empty, and nobody is told so.
func awaitScope(scope string) {
	for began := time.Now(); time.Since(began) < scopeMax; time.Sleep(scopeLook) {
		groups, err := os.ReadFile("/proc/self/cgroup")
		if err != nil || strings.Contains(string(groups), "/"+scope+"\n") {
			return
		}
	}
}

// newKeeper starts the keeper of a scope that is about to be made.
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

// abandon leaves the keeper to itself, where it is not known whether systemd makes the
// scope: it ends in it, or when it is not put there.
func (k *keeper) abandon() error { return errors.Join(k.pipe.Close(), k.cmd.Process.Release()) }

// leave lets the keeper linger after weir's end.
func (k *keeper) leave() error { return k.tell(stayWord) }

// wait lets the keeper stay for a time after weir's end.
func (k *keeper) wait(d time.Duration) error { return k.tell(waitWord + d.String()) }

func (k *keeper) tell(word string) error {
	_, err := io.WriteString(k.pipe, word)
	return errors.Join(err, k.pipe.Close(), k.cmd.Process.Release())
}
