package guestrun

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stuckTime before a suite's time is up, what hangs is asked where.
const stuckTime = 15 * time.Second

// reportStuck writes where each program waits, and each kernel thread that waits for a
// disk. In a guest, which nobody else uses, the kernel says the same in its log, and
// each weir ends with a list of its goroutines, so that the test that waits for it goes
// on and shows that.
func reportStuck(w io.Writer, proc string, guest bool) {
	_, _ = fmt.Fprintf(w, "\nlab: %v before the time is up, these wait:\n", stuckTime)
	tasks, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "task", "[0-9]*")) // the pattern is right
	for _, task := range tasks {
		// What ends meanwhile waits for nothing.
		comm, state, ok := commAndState(task)
		if !ok {
			continue
		}
		_, err := os.Readlink(filepath.Join(task, "exe"))
		if program := err == nil; !program && state != "D" {
			continue
		}
		wchan, _ := os.ReadFile(filepath.Join(task, "wchan"))
		stack, _ := os.ReadFile(filepath.Join(task, "stack"))
		id, _ := strings.CutPrefix(task, proc)
		_, _ = fmt.Fprintf(w, "%s %s %s %s\n%s", id, comm, state, wchan, stack)
	}
	if !guest {
		return
	}
	if err := os.WriteFile(filepath.Join(proc, "sysrq-trigger"), []byte("w"), 0); err != nil {
		_, _ = fmt.Fprintf(w, "lab: %v\n", err)
	}
	for _, task := range tasks {
		if comm, _, ok := commAndState(task); ok && comm == "weir" {
			if pid, err := strconv.Atoi(filepath.Base(task)); err == nil && filepath.Base(filepath.Dir(filepath.Dir(task))) == strconv.Itoa(pid) {
				_ = unix.Kill(pid, unix.SIGQUIT)
			}
		}
	}
}

// commAndState are two fields of a task's stat: "12 (name) S …".
func commAndState(task string) (comm, state string, ok bool) {
	data, err := os.ReadFile(filepath.Join(task, "stat"))
	if err != nil {
		return "", "", false
	}
	_, rest, _ := strings.Cut(string(data), "(")
	end := strings.LastIndex(rest, ") ")
	if end < 0 || end+3 > len(rest) {
		return "", "", false
	}
	return rest[:end], rest[end+2 : end+3], true
}
