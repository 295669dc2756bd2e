package limits_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const terminate = unix.SIGTERM

func weirBoth(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "weir", args...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	if err := cmd.Run(); err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, &messages)
	}
	return out.String(), messages.String()
}

func contains(s, part string) bool { return strings.Contains(s, part) }

func trim(b []byte) string { return strings.TrimSpace(string(b)) }

func stringReader(s string) *strings.Reader { return strings.NewReader(s) }

// until waits for a condition.
func until(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	lab.Await(t, within, what, holds)
}

// waitForGroup waits until weir has made a limited group and returns it as a target.
func waitForGroup(t *testing.T, name string) (target string) {
	t.Helper()
	until(t, "group "+name, 10*time.Second, func() bool {
		var doc struct {
			Groups []struct{ Target string }
		}
		if err := json.Unmarshal(weir(t, "show", "--json", "--for", "0"), &doc); err != nil {
			t.Fatal(err)
		}
		for _, g := range doc.Groups {
			if strings.Contains(g.Target, name) {
				target = g.Target
			}
		}
		return target != ""
	})
	return target
}

// deviceRate measures the bytes per second that are written to a disk.
func deviceRate(t *testing.T, d *lab.TestDisk, over time.Duration) float64 {
	t.Helper()
	began, before := time.Now(), counters(t, d.Number)
	time.Sleep(over)
	after := counters(t, d.Number)
	return float64(after.WrittenBytes-before.WrittenBytes) / time.Since(began).Seconds()
}
