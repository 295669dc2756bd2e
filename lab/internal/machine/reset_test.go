package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/process"
)

// A button is a guest that asks for resets, and notes each of its boots on a disk.
type button struct {
	UML
	times int
}

func (b button) Command(ctx context.Context, boot Boot) *exec.Cmd {
	at := slices.IndexFunc(boot.Words, func(w string) bool { return strings.HasPrefix(w, environ.Resets) })
	if at < 0 {
		return exec.CommandContext(ctx, "sh", "-c", "echo never >>"+boot.Disks[0].Path)
	}
	n := strings.TrimPrefix(boot.Words[at], environ.Resets)
	script := fmt.Sprintf("echo boot %s >>%s; ", n, boot.Disks[0].Path)
	if n != fmt.Sprint(b.times) {
		script += "echo 'kernel: " + environ.ResetOrder + "5ms'; sleep 60; echo too late >>" + boot.Disks[0].Path
	}
	return exec.CommandContext(ctx, "sh", "-c", script)
}

// A guest that asks for it is killed, and boots again with what is on its disks by then, until it ends by itself.
func TestReset(t *testing.T) {
	dir := t.TempDir()
	disk := filepath.Join(dir, "disk")
	job := guest.Job{Run: "TestX", Suites: []guest.Suite{{Name: "x"}}, Timeout: time.Minute, CPU: process.All}
	var told []string
	job.Log = func(line string) { told = append(told, line) }
	boots := func(m Machine, job guest.Job) string {
		t.Helper()
		if err := os.RemoveAll(disk); err != nil {
			t.Fatal(err)
		}
		if _, err := m.boots(t.Context(), job, []Disk{{Name: "ext4-0", Path: disk}}, dir, filepath.Join(dir, "console")); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(disk)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	m := Machine{Title: "x", Carrier: button{times: 3}}
	if got := boots(m, job); got != "boot 0\nboot 1\nboot 2\nboot 3\n" {
		t.Errorf("%q", got)
	}
	if len(told) != 3 {
		t.Errorf("%q on the console", told)
	}
	// Others are not reset: they would run all their tests anew.
	whole, two := job, job
	whole.Run, two.Suites = "", []guest.Suite{{Name: "x"}, {Name: "y"}}
	full := m
	full.System = []Disk{{Name: "root", Path: disk}}
	for what, got := range map[string]string{"a whole run": boots(m, whole), "two suites": boots(m, two), "a full guest": boots(full, job)} {
		if got != "never\n" {
			t.Errorf("%s: %q", what, got)
		}
	}
}

// Only an order resets.
func TestOrdered(t *testing.T) {
	reset := make(chan bool, 9)
	line := ordered(nil, func() { reset <- true })
	for _, text := range []string{"", "lab: reset", environ.ResetOrder + "x", environ.ResetOrder + "-1s", environ.ResetOrder + "0s"} {
		line(text)
	}
	line("[    3.1] x" + environ.ResetOrder + "1ms")
	<-reset
	if len(reset) != 0 {
		t.Error("something else is taken for an order")
	}
}
