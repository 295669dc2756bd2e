package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRunKillsAll(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	console := filepath.Join(t.TempDir(), "console")
	var logged []string
	// The child in the background is the kind of process UML leaves behind.
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 60 & echo $!; wait")
	err := Run(ctx, cmd, 0, console, func(s string) { logged = append(logged, s) })
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
