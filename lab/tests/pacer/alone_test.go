package pacer_test

import (
	"errors"
	"fmt"
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
	e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Once, lab.FS("ext4")) // nothing has BPF here, so all kernels are one
	alone := filepath.Join(weirAlone(t), "weir")

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

	plans := filepath.Join(filepath.Dir(alone), "plans.yaml")
	if err := os.WriteFile(plans, []byte("plans: {p: {write: 1MB/s}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("weir", "plan", "check", "--plans", plans).CombinedOutput()
	var exit *exec.ExitError
	if want := "weir: read plans: run weird: it is not beside weir; install it: make install has both\n"; !errors.As(err, &exit) || exit.ExitCode() != fault.ExitNotPossible || string(out) != want {
		t.Errorf("weir plan check: %v\n%s", err, out)
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

// weirAlone makes "weir" a copy of weir in a directory of its own, without weird beside it, which it
// returns, and waits until no pacer runs that may have weird.
func weirAlone(t *testing.T) (dir string) {
	t.Helper()
	from, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weir"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	lab.Await(t, 20*time.Second, "the end of another pacer", func() bool { return len(pacers(t)) == 0 })
	return dir
}

// Beside weir stands something else than weird, or one that does not work. weir says so in a line and
// soon, calls nothing held that is not, and leaves no process behind.
func TestBrokenWeird(t *testing.T) {
	lab.Need(t, lab.Root, lab.V1, lab.Once)
	dir := weirAlone(t)
	plans := filepath.Join(dir, "plans.yaml")
	if err := os.WriteFile(plans, []byte("plans: {p: {write: 1MB/s}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	const again = "; install weir and weird of one build again"
	const killed = "it ended at once (signal: killed): oh; the kernel's log (dmesg) says whether it was killed for lack of memory"
	long := fmt.Sprintf("1000%d", os.Getpid()) // nobody else on this machine sleeps that long
	for _, c := range []struct {
		name, weird, plans string
		pacer              string // empty: weir itself is the pacer
	}{
		{"it hangs", "#!/bin/sh\nexec sleep " + long + "\n", "it does not answer", "it does nothing" + again},
		{"it is stopped", "#!/bin/sh\nkill -STOP $$\n", "it does not answer", "it does nothing" + again},
		{"it says something else", "#!/bin/sh\necho hello\n", "it is another program", "it ended at once (exit status 0)" + again},
		{"it dies", "#!/bin/sh\necho oh >&2\nkill -9 $$\n", "it ended without an answer (signal: killed): oh", killed},
		{"it is cut off", "\x7fELF", filepath.Join(dir, "weird") + ": exec format error", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			lab.Await(t, 20*time.Second, "the end of another pacer", func() bool { return len(pacers(t)) == 0 })
			if err := os.WriteFile(filepath.Join(dir, "weird"), []byte(c.weird), 0o755); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			out, err := exec.Command("weir", "plan", "check", "--plans", plans).CombinedOutput()
			var exit *exec.ExitError
			if want := "weir: read plans: run weird: " + c.plans + again + "\n"; !errors.As(err, &exit) || exit.ExitCode() != fault.ExitNotPossible || string(out) != want {
				t.Errorf("weir plan check: %v\n%s\nwant %s", err, out, want)
			}
			out, err = exec.Command("weir", "run", "--write", "10MB/s", "--on", disk.Dir, "--", "true").CombinedOutput()
			text := string(out)
			if err != nil || strings.Contains(text, "by weir's pacer") != (c.pacer == "") || strings.Contains(text, "start the pacer: "+c.pacer) != (c.pacer != "") ||
				strings.Contains(text, "NOT to hold: buffered writes") != (c.pacer != "") {
				t.Errorf("weir run: %v\n%s\nwant %q", err, text, c.pacer)
			}
			if took := time.Since(began); took > lab.Patience(t, 10*time.Second) {
				t.Errorf("that took %v", took)
			}
			if got := strays(t, dir, long); c.pacer != "" && len(got) > 0 {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

// strays are the command lines of processes that a weird of a directory has become: of shells and sleeps.
func strays(t *testing.T, dir, long string) (found []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, _ := os.ReadFile(file) // some end meanwhile
		if text := string(line); strings.Contains(text, dir) || text == "sleep\x00"+long+"\x00" {
			found = append(found, text)
		}
	}
	return found
}
