package guestrun

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportStuck(t *testing.T) {
	proc := t.TempDir()
	for name, task := range map[string]struct{ stat, wchan, exe string }{
		"12":  {"12 (a) b) D 1 2", "io_schedule", "/bin/a"},
		"300": {"300 (kworker/0:1) D 2 0", "folio_wait_bit", ""},
		"301": {"301 (kworker/0:2) I 2 0", "idle_thread", ""},
		"400": {"400 (cut", "unread", "/bin/cut"},
	} {
		dir := filepath.Join(proc, name, "task", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"stat": task.stat, "wchan": task.wchan} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if task.exe != "" {
			if err := os.Symlink(task.exe, filepath.Join(dir, "exe")); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out bytes.Buffer
	reportStuck(&out, proc, false)
	for _, want := range []string{"/12/task/12 a) b D io_schedule", "/300/task/300 kworker/0:1 D folio_wait_bit"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, not := range []string{"idle_thread", "unread"} {
		if strings.Contains(out.String(), not) {
			t.Errorf("%q in\n%s", not, out.String())
		}
	}
	if _, err := os.Stat(filepath.Join(proc, "sysrq-trigger")); err == nil {
		t.Error("sysrq was asked for outside a guest")
	}
}
