package lab

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Called lists the processes that weir starts for itself under an argument, such as __pacer.
func Called(t testing.TB, arg string) (pids []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, err := os.ReadFile(line)
		if err != nil || string(text) != "weir\x00"+arg+"\x00" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}
