package small

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct{ console, want string }{
		{"=== RUN   TestA\n--- PASS: TestA (0.0s)\n=== RUN   TestB\n=== RUN   TestB/x\n", "it was in TestB, TestB/x"},
		{"=== RUN   TestA\n[ 1.0] Kernel panic - not syncing: x\n", "[ 1.0] Kernel panic - not syncing: x"},
		{"Booting\n", "it was in no test: its console tells how far it came"},
	} {
		if got := explain(c.console).Error(); got != c.want {
			t.Errorf("explain(%q) = %q, want %q", c.console, got, c.want)
		}
	}
}

func TestAttendKillsAll(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	console := filepath.Join(t.TempDir(), "console")
	var logged []string
	// The child in the background is the kind of process UML leaves behind.
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 60 & echo $!; wait")
	err := attend(ctx, cmd, console, func(s string) { logged = append(logged, s) })
	if err == nil || len(logged) != 1 {
		t.Fatalf("error %v, logged %q", err, logged)
	}
	deadline := time.Now().Add(5 * time.Second)
	for alive(logged[0]) {
		if time.Now().After(deadline) {
			t.Fatalf("process %s is still there", logged[0])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func alive(pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(data), ") Z ")
}
