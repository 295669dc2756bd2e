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

// Prove is ProveOnce, and again while weir prove cannot tell because the machine was too
// busy: of a load it says so itself, of a target that it only observes a canary does.
func Prove(t testing.TB, document any, args ...string) (code int) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		var text []byte
		var code int
		starved := theCanary.share(func() { text, code = runProve(t, args) })
		if attempt == attempts || !tooBusy(text, starved) {
			decode(t, text, document)
			return code
		}
		t.Logf("again: it cannot tell (starved %.1f %%)", 100*starved)
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

// tooBusy reports whether the machine is why a proof cannot tell.
func tooBusy(text []byte, starved float64) bool {
	var doc struct{ Rows []struct{ Reason string } }
	if err := json.Unmarshal(text, &doc); err != nil {
		return false // decode says so
	}
	for _, r := range doc.Rows {
		if r.Reason == "busy" || r.Reason == "slow" && starved > starvedMax {
			return true
		}
	}
	return false
}
