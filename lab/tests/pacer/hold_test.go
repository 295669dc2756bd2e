package pacer_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/calibrate"
)

// band is for what a writer gets, over ten seconds or, where time is short, five or six; starting
// weir included. A guest's clock wakes later.
func band(e environ.Environ) lab.Band {
	if e.Lane == "native" {
		return lab.Direct
	}
	return lab.Written
}

// fewer keeps what measures the pacer out of guests in which other tests measure it: beside
// systemd those of units and containers, and of two with one kernel it runs in one.
func fewer(t *testing.T, e environ.Environ) {
	t.Helper()
	if e.Lane != "native" && (e.Has(string(lab.Systemd)) || e.Cgroups.Mode == environ.Hybrid) {
		lab.Need(t, lab.Long)
	}
}

// beside has a test, or one of its cases, run beside others that measure what the pacer lets through: most
// of the time it waits. On this host, where the band is narrow, it runs alone.
func beside(t *testing.T) {
	t.Helper()
	if e, inside, err := environ.Load(); err == nil && inside && e.Lane != "native" {
		t.Parallel()
	}
}

// weir runs weir and returns what it said; it fails the test if weir does.
func weir(t *testing.T, args ...string) string {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("weir", args...)
	cmd.Stderr, cmd.Stdout = &said, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, said.Bytes())
	}
	return said.String()
}

// weir's pacer holds a buffered writer under weir run on v1.
func TestBufferedIsPaced(t *testing.T) {
	for _, c := range []struct {
		fs   string
		rate int // bytes a second
		long bool
	}{{"ext4", 10e6, false}, {"xfs", 50e6, true}, {"ext4", 1e6, true}, {"ext4", 50e6, true}, {"ext4", 200e6, true}, {"xfs", 10e6, true}} {
		t.Run(fmt.Sprintf("%s/%dMB", c.fs, c.rate/1e6), func(t *testing.T) {
			if c.rate != 10e6 { // a guest's disks are small, and its clock is coarse for 1 MB/s
				lab.Need(t, lab.Whole, lab.Lane("native"))
			}
			e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.FS(c.fs))
			fewer(t, e)
			seconds := 6
			switch {
			case c.long:
				lab.Need(t, lab.Long)
				seconds = 10
			case !testing.Short(): // where other writers are paced on ext4
				lab.Need(t, lab.Whole)
			}
			disk := lab.Disk(t, lab.FS(c.fs))
			lab.Ratio(t, "the writer", float64(c.rate), band(e), func() float64 {
				file := filepath.Join(disk.Dir, "f")
				if err := os.RemoveAll(file); err != nil {
					t.Fatal(err)
				}
				cost := make(chan float64, 1)
				if c.long {
					go func() { cost <- share(t, e, time.Second, time.Duration(seconds-2)*time.Second) }()
				}
				rate := writes(t, disk.Dir, c.rate, seconds, "exec "+fill(file, c.rate*seconds))
				if c.long {
					if is := <-cost; is > 0.02 {
						lab.Measures(t)
						t.Errorf("the pacer took %.2f %% of a processor, want at most 2 %%", 100*is)
					} else {
						t.Logf("the pacer took %.2f %% of a processor", 100*is)
					}
				}
				return rate
			})
		})
	}
}

// Many writers, and those that live for a moment, share one limit.
func TestManyWritersArePaced(t *testing.T) {
	for name, script := range map[string]func(dir string, bytes int) string{
		"16 at once": func(dir string, bytes int) string {
			return "for i in $(seq 16); do " + fill(dir+"/$i", bytes/16) + " & done; wait"
		},
		"50 a second": func(dir string, bytes int) string {
			return "for i in $(seq 234); do " + fill(dir+"/$i", bytes/234) + "; done" // 13 pieces each
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Long, lab.FS("ext4"))
			disk := lab.Disk(t, lab.FS("ext4"))
			const rate, seconds = 10e6, 5
			lab.Ratio(t, "the writers", rate, band(e), func() float64 {
				entries, err := filepath.Glob(disk.Dir + "/[0-9]*")
				if err != nil {
					t.Fatal(err)
				}
				for _, file := range entries {
					if err := os.Remove(file); err != nil {
						t.Fatal(err)
					}
				}
				return writes(t, disk.Dir, rate, seconds, script(disk.Dir, rate*seconds))
			})
		})
	}
}

// fill is a command that writes a file, in pieces of 16 KiB. (What stops a process cuts
// its read of /dev/zero short.)
func fill(file string, size int) string {
	return fmt.Sprintf("dd if=/dev/zero of=%s bs=16384 count=%d iflag=fullblock status=none", file, (size+8192)/16384)
}

// share is how much of a processor the pacer, with all its threads, takes from after some time
// on. Programs beside the lab lengthen that where processors share a core: it counts as long as
// it would have taken undisturbed.
func share(t *testing.T, e environ.Environ, after, window time.Duration) float64 {
	time.Sleep(after)
	before := taken(t)
	longer := lengthened(e, window)
	is := (taken(t) - before).Seconds() / window.Seconds()
	t.Logf("the pacer took %.2f %% of a processor on which a piece of computing took %.2f times what it does undisturbed", 100*is, longer)
	return is / longer
}

// lengthened measures for so long how much longer a piece of computing takes than undisturbed:
// at least 1.
func lengthened(e environ.Environ, window time.Duration) float64 {
	if e.Piece == 0 {
		time.Sleep(window)
		return 1
	}
	var sum time.Duration
	pieces := 0
	for end := time.Now().Add(window); time.Now().Before(end); pieces++ {
		sum += calibrate.Compute(3) // the first ones find nothing in the processor's caches
		time.Sleep(100 * time.Millisecond)
	}
	return max(1, sum.Seconds()/float64(pieces)/e.Piece.Seconds())
}

// taken is the processor time of the pacer's threads.
func taken(t *testing.T) (all time.Duration) {
	for _, pid := range lab.Called(t, "__pacer") {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			t.Error(err)
		}
		for _, file := range threads {
			var ran time.Duration
			text, err := os.ReadFile(file)
			if err == nil {
				_, err = fmt.Sscan(string(text), &ran) // in nanoseconds
			}
			if err != nil {
				t.Error(err)
			}
			all += ran
		}
	}
	if all == 0 {
		t.Error("no pacer runs")
	}
	return all
}

// writes runs a script that writes for so many seconds, and returns the rate it got.
func writes(t *testing.T, dir string, rate, seconds int, script string) float64 {
	t.Helper()
	return float64(rate*seconds) / paced(t, dir, rate, script).Seconds()
}

// paced is how long a shell script takes under a limit that the pacer holds.
func paced(t *testing.T, dir string, rate int, script string) time.Duration {
	t.Helper()
	times := filepath.Join(t.TempDir(), "times") // by the command itself: weir's own start and end are not under the limit
	const now = "read up rest </proc/uptime; echo $up"
	// What the last moment was too fast is paid for before a process of the group goes on.
	said := weir(t, "run", "--write", fmt.Sprint(rate), "--on", dir, "--", "sh", "-c",
		fmt.Sprintf("%s >'%s'; (%s); sleep 0.1; %s >>'%s'", now, times, script, now, times))
	text, err := os.ReadFile(times)
	if err != nil {
		t.Fatal(err)
	}
	var began, ended float64 // seconds since the boot
	if _, err := fmt.Sscan(string(text), &began, &ended); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	took := time.Duration((ended-began)*float64(time.Second)) - 100*time.Millisecond
	t.Log(said)
	if want := "buffered writes by weir's pacer"; !strings.Contains(said, want) {
		t.Errorf("weir run said %q, want %q in it", said, want)
	}
	return took
}

// A new group with the name of a removed one is paced as a new group.
func TestANameAgainIsPaced(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Long, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(e, 4<<20)
	for i := range 4 {
		began := time.Now()
		// In a slow guest the pacer looks at a group that has done nothing yet every 100 ms, if it has no other
		// groups, and a command that is faster than that is to be there still when it does.
		weir(t, "run", "--name", "again", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--", "sh", "-c", fill(fmt.Sprint(disk.Dir, "/", i), rate)+"; sleep 0.3")
		if took := time.Since(began); took < 800*time.Millisecond {
			lab.Measures(t)
			t.Errorf("run %d wrote a second of the limit in %s", i, took)
		}
	}
}
