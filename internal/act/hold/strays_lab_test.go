package hold

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// What systemd moved for a weir that was killed is put back by the next one, with what it
// has forked since.
func TestStraysArePutBackAfterAKill(t *testing.T) {
	lab.Need(t, lab.Root, lab.V1)
	fs, g := newGroup(t, "weir-test-strays")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read go; sleep 600 & echo $!; wait")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := 0
	defer func() {
		_ = exec.Command("kill", "-KILL", strconv.Itoa(child)).Run()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for range 500 { // until the child has ended
			if pids, err := g.Processes(); err != nil || len(pids) == 0 {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := g.AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	found, err := findStrays(g.Hierarchy())
	if err != nil {
		t.Fatal(err)
	}
	dir := state.At(filepath.Join(t.TempDir(), "root"))
	record, err := dir.New(strayKind, found)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Hierarchy().Root().AddProcess(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if child, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil { // its owner dies
		t.Fatal(err)
	}
	if err := (Holder{State: dir}).Undo(fs); err != nil {
		t.Fatal(err)
	}
	pids, err := g.Processes()
	if err != nil || !slices.Contains(pids, cmd.Process.Pid) || !slices.Contains(pids, child) {
		t.Errorf("in the group are %v, %v; want %d and its child %d", pids, err, cmd.Process.Pid, child)
	}
}
