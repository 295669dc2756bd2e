package launch

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// How a command has ended is the same whether weir reaps it or not. If it does not, the command is
// still there to be waited for.
func TestEnding(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -9 $$": 128 + 9, "kill -15 $$": 128 + 15} {
		for _, reap := range []bool{true, false} {
			cmd := exec.Command("sh", "-c", script)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var how ending
			_ = how.wait(cmd, reap) // the status says it
			if !how.known || how.status != want {
				t.Errorf("%s, reaped %v: %+v, want status %d", script, reap, how, want)
			}
			_, err := unix.Wait4(cmd.Process.Pid, nil, unix.WNOHANG, nil)
			if left := err == nil; left == reap {
				t.Errorf("%s, reaped %v: it is left: %v", script, reap, left)
			}
		}
	}
	var how ending
	if err := how.note(1 << 30); err == nil || how.known {
		t.Errorf("no such process: %+v, %v", how, err)
	}
}
