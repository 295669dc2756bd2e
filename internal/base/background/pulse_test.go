package background

import (
	"os/exec"
	"testing"
	"time"
)

// A process that waits for what never comes hangs; one that computes does not, and neither does one
// that has ended.
func TestPulse(t *testing.T) {
	for _, c := range []struct {
		name, script string
		hangs        bool
	}{
		{"it sleeps", "exec sleep 100", true},
		{"it is stopped", "kill -STOP $$", true},
		{"it computes", "while :; do :; done", false},
		{"it has ended", "exit 0", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sh", "-c", c.script)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}()
			p, looks := PulseOf(cmd.Process.Pid), 0
			for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(PulseEvery / 10) {
				if looks++; p.Hangs() {
					break
				}
				if !c.hangs && looks > 3*pulsesMost {
					return
				}
			}
			if got := p.quiet >= pulsesMost; got != c.hangs || looks < pulsesMost {
				t.Errorf("after %d looks: hangs %v", looks, got)
			}
		})
	}
}

// A process that wakes between looks does not hang, however often it is seen asleep. It wakes when
// the test has it wake, as a process that has no processor cannot.
func TestPulseOfOneThatWakes(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while read -r line; do echo; done")
	wake, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	woken, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := PulseOf(cmd.Process.Pid)
	for look := range 5 * pulsesMost {
		if _, err := wake.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := woken.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if p.Hangs() {
			t.Fatalf("at look %d it hangs", look)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); !p.Hangs(); time.Sleep(time.Millisecond) { // nobody wakes it any more
		if time.Now().After(deadline) {
			t.Fatal("it waits for what does not come, and does not hang")
		}
	}
	_ = wake.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
