package limits_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// A command under a limit that starts another one by weir run does not get rid of its limit, though
// the other one runs in a group that the limit does not reach, and nobody limits its writes.
func TestANestedRunKeepsTheLimit(t *testing.T) {
	if e := lab.Need(t, lab.Root, lab.Long, lab.FS("ext4")); e.Cgroups.IOInV2 { // else the kernel holds no buffered writes
		lab.Need(t, lab.Root, lab.Memory, lab.FS("ext4"))
	}
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, seconds = 4_000_000, 8
	nested := func(command ...string) []string {
		return append([]string{"run", "--quiet", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--",
			"weir", "run", "--read", "50MB/s", "--on", disk.Dir, "--"}, command...)
	}
	t.Run("direct", func(t *testing.T) {
		job := load.Job{Path: load.Direct, File: fileIn(t, disk.Dir, "f"), Block: blockFor(rate), Size: directFile, Warm: warm, For: window}
		filled(t, job.File, directFile)
		lab.Ratio(t, "bytes", rate, lab.Written, func() float64 {
			r, err := load.Decode(bytes.NewReader(weir(t, nested(append([]string{"weir", "__load"}, job.Args()...)...)...)), nil)
			if err != nil {
				t.Fatal(err)
			}
			return r.BytesPerSec()
		})
	})
	t.Run("buffered", func(t *testing.T) {
		// weir's own start and end are not under the limit. What the last moment was too fast is paid for
		// before a process of the group goes on.
		const script = `read up rest </proc/uptime; echo $up; rm -f "$0"; dd if=/dev/zero of="$0" bs=16384 count="$1" iflag=fullblock conv=fsync 2>/dev/null; sleep 0.1; read up rest </proc/uptime; echo $up`
		lab.Ratio(t, "bytes", rate, lab.Written, func() float64 {
			start := time.Now()
			out, said := weirBoth(t, nested("sh", "-c", script, fileIn(t, disk.Dir, "g"), fmt.Sprint(rate*seconds/16384))...)
			if want := fmt.Sprintf("note: writes to %s: 4 MB/s, the limit of cgroup /", disk.Node); !contains(said, want) {
				t.Errorf("the inner weir run said %q, want %q in it", said, want)
			}
			var began, ended float64 // seconds since the boot
			if _, err := fmt.Sscan(out, &began, &ended); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			// On v1 the outer group was paused for all of it once more.
			if more := time.Since(start).Seconds() - (ended - began); more > lab.Patience(t, seconds/2*time.Second).Seconds() {
				t.Errorf("it took %.1f s more than the command", more)
			}
			return rate * seconds / (ended - began - 0.1)
		})
	})
	// On v2 the kernel charges these writes to the group that has written the file before. Only the pacer
	// holds them, and it is not asked for again.
	t.Run("over another group's file", func(t *testing.T) {
		file := fileIn(t, disk.Dir, "h")
		filled(t, file, rate*seconds)
		const script = `read up rest </proc/uptime; echo $up; dd if=/dev/zero of="$0" bs=16384 count="$1" iflag=fullblock conv=notrunc,fsync 2>/dev/null; sleep 0.1; read up rest </proc/uptime; echo $up`
		lab.Ratio(t, "bytes", rate, lab.Written, func() float64 {
			out, said := weirBoth(t, "run", "--quiet", "--hold", "pacer", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--",
				"weir", "run", "--read", "50MB/s", "--on", disk.Dir, "--", "sh", "-c", script, file, fmt.Sprint(rate*seconds/16384))
			if told := contains(said, "note: weir's pacer holds the command's writes, as it holds those of cgroup /"); told != lab.Here(t).Cgroups.IOInV2 {
				t.Errorf("the inner weir run said %q", said) // on v1 the pacer holds it anyway
			}
			var began, ended float64
			if _, err := fmt.Sscan(out, &began, &ended); err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			return rate * seconds / (ended - began - 0.1)
		})
	})
}
