package load_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

const (
	block  = 64 << 10
	size   = 16 << 20
	window = 400 * time.Millisecond
)

// fileSystems are those whose paths to the disk differ.
var fileSystems = []string{"ext4", "xfs", "btrfs"}

// eachFS runs a test on a disk of each file system, side by side: once a kernel, because
// groups have nothing to do with it. Where the processor is emulated, ext4 has to do.
func eachFS(t *testing.T, test func(t *testing.T, disk *lab.TestDisk)) {
	for _, fs := range fileSystems {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.Guest, lab.FS(fs))
			if fs != fileSystems[0] || e.Lane != "qemu" {
				lab.Need(t, lab.Long, lab.Rates)
			}
			t.Parallel()
			test(t, lab.Disk(t, lab.FS(fs)))
		})
	}
}

// A run is what the load said and what the disk did from its start to its end.
type run struct {
	load.Result
	total load.Tick // with what came before the window
	disk  lab.Traffic
}

// start starts the program with a job, which finds file, if there is one, as fd:3.
func start(t *testing.T, job load.Job, file *os.File) (cmd *exec.Cmd, out *os.File, stderr *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	cmd = exec.CommandContext(ctx, "weir", append([]string{"__load"}, job.Args()...)...)
	stderr = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = in, stderr
	if file != nil {
		cmd.ExtraFiles = []*os.File{file}
	}
	if err := errors.Join(cmd.Start(), in.Close()); err != nil {
		t.Fatal(err)
	}
	return cmd, out, stderr
}

// do does a job on a file of the disk.
func do(t *testing.T, disk *lab.TestDisk, job load.Job, file *os.File) (r run) {
	t.Helper()
	if job.Block == 0 {
		job.Block = block
	}
	job.Size, job.For = size, window
	if job.Read {
		job.File = "fd:3"
	} else {
		job.Dir = disk.Dir
	}
	before := lab.DeviceTraffic(t, disk.Number)
	cmd, out, stderr := start(t, job, file)
	var err error
	r.Result, err = load.Decode(out, func(tick load.Tick) { r.total = tick })
	if err = errors.Join(err, cmd.Wait()); err != nil {
		t.Fatalf("weir __load %q: %v\n%s", job.Args(), err, stderr.Bytes())
	}
	after := lab.DeviceTraffic(t, disk.Number)
	r.disk = lab.Traffic{
		ReadBytes: after.ReadBytes - before.ReadBytes, Reads: after.Reads - before.Reads,
		WriteBytes: after.WriteBytes - before.WriteBytes, Writes: after.Writes - before.Writes,
	}
	t.Logf("%s: %d bytes, %d operations, p50 %v, p99 %v; the disk %+v", job.Path, r.total.Bytes, r.total.Ops, r.P50, r.P99, r.disk)
	if r.Bytes == 0 || r.Bytes > r.total.Bytes {
		t.Errorf("%s: %+v of %+v", job.Path, r.Result, r.total)
	}
	return r
}

// prepare makes a file to read on the disk.
func prepare(t *testing.T, disk *lab.TestDisk) *os.File {
	t.Helper()
	f, err := load.Prepare(t.Context(), disk.Dir, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// around fails the test unless got is within 5 % of want, or above it by no more than
// spare.
func around(t *testing.T, what string, got, want, spare int64) {
	t.Helper()
	if f := float64(want); float64(got) < 0.95*f || float64(got) > 1.05*f+float64(spare) {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}
