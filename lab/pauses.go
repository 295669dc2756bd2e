package lab

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/state"
)

// A PacedWriter writes in a group that weir's pacer holds, and that its owner pauses too.
type PacedWriter struct {
	Limited pacer.Place   // the group with the limit
	Frozen  string        // the owner's group where processes are paused, as a directory
	Mark    func() string // changes with each write
}

// Owes is how long the pacer has the group paused from now on, for what it has written.
func (w PacedWriter) Owes(t testing.TB) time.Duration {
	t.Helper()
	seen, err := pacer.Client{State: state.At("/")}.Seen(w.Limited)
	if err != nil {
		t.Fatal(err)
	}
	return seen.Owes
}

// AwaitWrite waits until the writer, resumed by its owner, has written since it was at a mark. It may take
// as long as the writer owes, and limit (see Patience). If it takes longer the test fails, and says what tells
// a debt from a process that is left paused: what the pacer says, which groups are frozen, and what each process waits for.
func (w PacedWriter) AwaitWrite(t testing.TB, limit time.Duration, since string) {
	t.Helper()
	began, owed := time.Now(), w.Owes(t)
	for limit = Patience(t, limit) + owed; w.Mark() == since; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > limit {
			seen, err := pacer.Client{State: state.At("/")}.Seen(w.Limited)
			t.Fatalf("no write for %s after its owner's pause, when it owed %s\nthe pacer has it paused: %t; it owes %s now (%v)\n%s", limit, owed, seen.Stopped, seen.Owes, err, frozen(w.Frozen))
		}
	}
}

// frozen says of a group and those below it whether they are frozen, and what their processes wait for.
func frozen(dir string) string {
	var said strings.Builder
	err := filepath.WalkDir(dir, func(group string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // a group goes meanwhile
		}
		fmt.Fprint(&said, group, ":")
		for _, name := range []string{"freezer.state", "freezer.self_freezing", "freezer.parent_freezing", "cgroup.freeze", "cgroup.events"} {
			if text, err := os.ReadFile(filepath.Join(group, name)); err == nil {
				fmt.Fprintf(&said, " %s is %s;", name, strings.Join(strings.Fields(string(text)), " "))
			}
		}
		pids, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		for _, text := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(text); err == nil {
				fmt.Fprintf(&said, "\n  process %d: %s", pid, waits(pid))
			}
		}
		fmt.Fprintln(&said)
		return nil
	})
	if err != nil {
		fmt.Fprintln(&said, err)
	}
	return said.String()
}
