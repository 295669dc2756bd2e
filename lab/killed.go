package lab

import (
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Killed starts weir and kills it after a random time of at most within. A weir that ends
// before its kill must not have failed: it would prove nothing.
func Killed(t testing.TB, within time.Duration, args ...string) {
	t.Helper()
	cmd := exec.Command("weir", args...)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(rand.N(within))
	_ = cmd.Process.Kill() // it may have ended
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) && exit.Exited() {
		t.Fatalf("weir %v: %v before it was killed\n%s", args, err, &said)
	}
}
