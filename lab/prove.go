package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// waited is for how long before a proof a machine may have stood still, and the proof have
// seen what waited for the throttle meanwhile.
const waited = 10 * time.Second

// Prove is ProveOnce, and again while weir prove cannot tell because the machine was too
// busy: of a load it says so itself, of a target that it only observes a canary does. So
// it does of a machine that stood still: what a target that runs all the time does then
// goes on at once (a full guest: 53 MB after 5.4 s, under 10 MB/s).
func Prove(t testing.TB, document any, args ...string) (code int) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		var text []byte
		var code int
		began := time.Now()
		starved := theCanary.share(func() { text, code = runProve(t, args) })
		stalled := theCanary.longest(began.Add(-waited))
		if attempt == attempts || !tooBusy(text, starved, stalled) {
			decode(t, text, document)
			return code
		}
		t.Logf("again: it cannot tell (starved %.1f %%, for %.1f s on end)", 100*starved, stalled.Seconds())
		theCanary.awaitQuiet()
	}
}

// ProveOnce runs weir prove with --json, reads its document into one that is made for as
// much of it as is needed, and returns the exit code.
func ProveOnce(t testing.TB, document any, args ...string) (code int) {
	t.Helper()
	text, code := runProve(t, args)
	decode(t, text, document)
	return code
}

func runProve(t testing.TB, args []string) (text []byte, code int) {
	t.Helper()
	cmd := exec.Command("weir", append([]string{"prove", "--json"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	code = cmd.ProcessState.ExitCode()
	t.Logf("weir prove %s: %d in %.1f s; %s", strings.Join(args, " "), code, time.Since(began).Seconds(), &stderr)
	return stdout.Bytes(), code
}

func decode(t testing.TB, text []byte, document any) {
	t.Helper()
	if err := json.Unmarshal(text, document); err != nil {
		t.Fatalf("weir prove's document: %v: %q", err, text)
	}
}

// tooBusy reports whether the machine is why a proof cannot tell, or saw too much.
func tooBusy(text []byte, starved float64, stalled time.Duration) bool {
	var doc struct{ Rows []struct{ Reason string } }
	if err := json.Unmarshal(text, &doc); err != nil {
		return false // decode says so
	}
	for _, r := range doc.Rows {
		if r.Reason == "busy" || r.Reason == "slow" && starved > starvedMax || r.Reason == "too-much" && stalled > CatchUp {
			return true
		}
	}
	return false
}
