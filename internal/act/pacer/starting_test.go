package pacer

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/state"
)

// Whoever starts what is no pacer is told so soon, and leaves nothing behind.
func TestNoPacerIsStarted(t *testing.T) {
	defer func() { start = begin }()
	for script, want := range map[string]string{
		"exit 0":           "it ended at once (exit status 0)",
		"exit 2":           "it ended at once (exit status 2)",
		"kill -9 $$":       "it ended at once (signal: killed)",
		"sleep 1000; exit": "it does nothing",
	} {
		var own *starting
		start = func() (*starting, error) {
			cmd := exec.Command("sh", "-c", script)
			cmd.SysProcAttr = background.Command(PacerArg).SysProcAttr
			var err error
			own, err = started(cmd)
			return own, err
		}
		began := time.Now()
		_, err := (Client{state.At(t.TempDir())}).ask(ask{})
		if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.NotPossible || !own.over {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
		if took := time.Since(began); took > startMax/2 {
			t.Errorf("%s: that took %v", script, took)
		}
	}
}

// A weird that goes on for long keeps no zombie of a pacer that has ended, although nobody asks any more.
func TestAPacerThatEndsIsReaped(t *testing.T) {
	s, err := started(exec.Command("sh", "-c", "exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); unix.Kill(s.process.Pid, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is a zombie")
		}
	}
}
