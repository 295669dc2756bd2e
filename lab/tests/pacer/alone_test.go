package pacer_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/lab"
)

// A copy of weir without weird beside it holds buffered writes as well, by a pacer that is this
// weir and has no BPF. What takes weird ends with a line that says so.
func TestWithoutWeird(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.FS("ext4"))
	fewer(t, e)
	from, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "weir")
	if err := os.WriteFile(alone, program, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(alone)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	lab.Await(t, 20*time.Second, "the end of another test's pacer", func() bool { return len(pacers(t)) == 0 })

	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, seconds = 10e6, 5
	lab.Ratio(t, "the writer", rate, band(e), func() float64 {
		file := filepath.Join(disk.Dir, "f")
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		return writes(t, disk.Dir, rate, seconds, "exec "+fill(file, rate*seconds))
	})
	if got := pacers(t); len(got) != 1 || got[0] != alone {
		t.Errorf("the pacers are %q, want %s", got, alone)
	}

	out, err := exec.Command("weir", "trace", "--for", "1s").CombinedOutput()
	var exit *exec.ExitError
	if want := "weir: run weird: it is not beside weir; install it: make install has both\n"; !errors.As(err, &exit) || exit.ExitCode() != fault.ExitNotPossible || string(out) != want {
		t.Errorf("weir trace: %v\n%s", err, out)
	}
}

// pacers are the programs of the pacers that run.
func pacers(t *testing.T) (programs []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(line), "weir\x00"+pacer.PacerArg+"\x00") {
			continue // it has ended, or is another
		}
		if program, err := os.Readlink(filepath.Dir(file) + "/exe"); err == nil {
			programs = append(programs, program)
		}
	}
	return programs
}
