package limits_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// A writer that stalls may catch up, but only by the slice or two that the throttle keeps.
func TestAStallIsNotSaved(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate = 2e6
	job := load.Job{Path: load.Direct, File: fileIn(t, disk.Dir, "f"), Block: blockFor(rate), Size: directFile, For: time.Minute}
	note := filepath.Join(t.TempDir(), "pid")
	args := append([]string{"run", "--quiet", "--write", fmt.Sprint(int(rate)), "--on", disk.Dir, "--",
		"sh", "-c", `echo $$ >"$0.new" && mv "$0.new" "$0" && exec weir __load "$@"`, note}, job.Args()...)
	cmd := exec.Command("weir", args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(terminate)
		_ = cmd.Wait()
	}()
	writer := 0
	until(t, "the load", 10*time.Second, func() bool {
		text, _ := os.ReadFile(note) // not there yet
		writer, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return writer != 0
	})
	time.Sleep(time.Second)
	for _, stall := range []time.Duration{50 * time.Millisecond, 150 * time.Millisecond} {
		what := fmt.Sprintf("after a stall of %s, milliseconds ahead of the limit", stall)
		lab.Ratio(t, what, float64(lab.CatchUp.Milliseconds()), lab.Band{Low: math.Inf(-1), High: 1}, func() float64 {
			if err := unix.Kill(writer, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			time.Sleep(stall)
			before, began := counters(t, disk.Number).WrittenBytes, time.Now()
			if err := unix.Kill(writer, unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			done, took := float64(counters(t, disk.Number).WrittenBytes-before), time.Since(began).Seconds()
			return 1000 * (done/rate - took)
		})
	}
}
