package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestRunKillsAll(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	console := filepath.Join(t.TempDir(), "console")
	var logged []string
	// The child in the background is the kind of process UML leaves behind.
	cmd := exec.CommandContext(ctx, "sh", "-c", "sleep 60 & echo $!; wait")
	err := Run(ctx, cmd, 0, console, func(s string) {
		logged = append(logged, s)
		cancel()
	})
	if err == nil || len(logged) != 1 {
		t.Fatalf("error %v, logged %q", err, logged)
	}
	deadline := time.Now().Add(time.Minute)
	for alive(logged[0]) {
		if time.Now().After(deadline) {
			t.Fatalf("process %s is still there", logged[0])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What has only spare time, and its children, are idle to the scheduler; others are what
// this program is.
func TestRunInSpareTime(t *testing.T) {
	own, err := exec.Command("chrt", "--pid", strconv.Itoa(os.Getpid())).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, policy, _ := strings.Cut(strings.SplitN(string(own), "\n", 2)[0], "policy: ")
	for cpu, want := range map[int]string{Spare: "SCHED_IDLE", 0: policy, All: policy} {
		var said strings.Builder
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `sh -c 'chrt --pid $$; true'`)
		if err := Run(t.Context(), cmd, cpu, filepath.Join(t.TempDir(), "console"), func(s string) { said.WriteString(s) }); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(said.String(), want) {
			t.Errorf("processor %d: %q, want %s in it", cpu, said.String(), want)
		}
	}
}

func alive(pid string) bool {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(data), ") Z ")
}
