package pacer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// timed are the times of a writer's writes of 64 KiB.
type timed struct {
	P50, P99, Max time.Duration
	BytesPerSec   float64
}

// writeTimed writes a file in pieces of 64 KiB, and prints how long they took.
func writeTimed(f *os.File, bytes int) error {
	piece := make([]byte, 64<<10)
	var all []time.Duration
	began := time.Now()
	for range bytes / len(piece) {
		at := time.Now()
		if _, err := f.Write(piece); err != nil {
			return err
		}
		all = append(all, time.Since(at))
	}
	const settle = 100 * time.Millisecond // in which the pacer has the last pieces paid for
	time.Sleep(settle)
	took := time.Since(began) - settle
	slices.Sort(all)
	n := len(all)
	return json.NewEncoder(os.Stdout).Encode(timed{all[n/2], all[n*99/100], all[n-1], float64(bytes) / took.Seconds()})
}

// How long a write of 64 KiB takes under the pacer and under the kernel's own writeback, at
// the same limit. The kernel lets the writer run ahead of the disk if memory is not bounded.
func TestWriteLatency(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Root, lab.V2, lab.Memory, lab.Rates, lab.Guest, lab.NoSystemd, lab.FS("ext4"))
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(writer, "timed")
	const rate, seconds = 10_000_000, 12
	for _, c := range []struct {
		name string
		args []string
	}{
		{"kernel, 64 MiB of memory", []string{"--hold", "kernel", "--memory", "64MiB"}},
		{"kernel, memory unbounded", []string{"--hold", "kernel"}},
		{"pacer, memory unbounded", []string{"--hold", "pacer"}},
	} {
		disk := lab.Disk(t, lab.FS("ext4"))
		args := append([]string{"run", "--quiet", "--write", fmt.Sprint(rate), "--on", disk.Dir}, c.args...)
		cmd := exec.Command("weir", append(args, "--", program, filepath.Join(disk.Dir, "f"), fmt.Sprint(rate*seconds))...)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, &said)
		}
		var got timed
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-26s writer %6.2f MB/s  p50 %-10s p99 %-10s max %s", c.name, got.BytesPerSec/1e6, got.P50.Round(time.Microsecond), got.P99.Round(time.Microsecond), got.Max.Round(time.Microsecond))
		if strings.HasPrefix(c.name, "pacer") && (got.BytesPerSec < rate*lab.Written.Low || got.BytesPerSec > rate*lab.Written.High) {
			t.Errorf("%s: %.0f bytes/s of %d", c.name, got.BytesPerSec, rate)
		}
	}
}
