package background

import (
	"os/exec"
	"testing"
	"time"
)

// A process that waits for what never comes hangs; one that computes, or wakes now and then, does
// not, and neither does one that has ended.
func TestPulse(t *testing.T) {
	for _, c := range []struct {
		name, script string
		hangs        bool
	}{
		{"it sleeps", "exec sleep 100", true},
		{"it is stopped", "kill -STOP $$", true},
		{"it computes", "while :; do :; done", false},
		{"it wakes", "while :; do sleep 0.02; done", false},
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
