package limits_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// Two commands with 10 MB/s each write to one disk at once, and both hold.
func TestTwoCommandsOnOneDisk(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Newest, lab.FS("ext4"))
	if e.Has(string(lab.Systemd)) {
		lab.Need(t, lab.Long)
	}
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(e, 10e6)
	var jobs []load.Job
	for i := range 2 {
		jobs = append(jobs, load.Job{Path: load.Direct, File: fileIn(t, disk.Dir, fmt.Sprint("f", i)), Block: 32 << 10, Size: directFile, Warm: warm, For: window})
	}
	lab.Ratio(t, "the worse of two direct writes", float64(rate), lab.Written, func() float64 {
		var results [2]load.Result
		var both sync.WaitGroup
		for i, job := range jobs {
			both.Go(func() { results[i] = limited(t, []string{"--write", fmt.Sprint(rate), "--on", disk.Dir}, job) })
		}
		both.Wait()
		atOnce(t, results)
		first, second := results[0].BytesPerSec(), results[1].BytesPerSec()
		t.Logf("%.0f and %.0f bytes/s", first, second)
		if math.Abs(first/float64(rate)-1) > math.Abs(second/float64(rate)-1) {
			return first
		}
		return second
	})
}

// atOnce fails the test if two loads were not counted in the same time.
func atOnce(t *testing.T, r [2]load.Result) {
	t.Helper()
	common := time.Duration(min(r[0].Ended, r[1].Ended) - max(r[0].Began, r[1].Began))
	if common < window*3/4 {
		t.Errorf("only %s of %s were at once", common, window)
	}
}

// The read and the write limit of one group are independent, both at work at once.
func TestReadAndWriteAreIndependent(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Long, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	read, written := fileIn(t, disk.Dir, "read"), fileIn(t, disk.Dir, "written")
	filled(t, read, directFile)
	reads, writes := lab.Scaled(e, 8e6), lab.Scaled(e, 2e6)
	jobs := []load.Job{
		{Path: load.Direct, Read: true, File: read, Block: blockFor(reads), Size: directFile, Warm: warm, For: window},
		{Path: load.Direct, File: written, Block: blockFor(writes), Size: directFile, Warm: warm, For: window},
	}
	lab.Ratio(t, "the worse of a read and a write", 1, lab.Direct, func() float64 {
		results := together(t, []string{"--read", fmt.Sprint(reads), "--write", fmt.Sprint(writes), "--on", disk.Dir}, jobs)
		atOnce(t, results)
		read, write := results[0].BytesPerSec()/float64(reads), results[1].BytesPerSec()/float64(writes)
		t.Logf("%.3f and %.3f of their limits", read, write)
		if math.Abs(read-1) > math.Abs(write-1) {
			return read
		}
		return write
	})
}

// together does two jobs at once under one weir run.
func together(t *testing.T, limits []string, jobs []load.Job) (results [2]load.Result) {
	t.Helper()
	script := ""
	outs := [2]string{}
	for i, job := range jobs {
		outs[i] = filepath.Join(t.TempDir(), fmt.Sprint("out", i))
		script += "weir __load " + strings.Join(job.Args(), " ") + " >" + outs[i] + " & "
	}
	weir(t, append(append([]string{"run", "--quiet"}, limits...), "--", "sh", "-c", script+"wait")...)
	for i, out := range outs {
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if results[i], err = load.Decode(bytes.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	return results
}

// weir set on a running writer takes effect within a second and changes only the rates that
// it names. weir clear frees the writer again.
func TestSetAndClearWhileItRuns(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.OnceV1, lab.FS("ext4")) // with units and containers others show it on v2
	rate := lab.Scaled(e, 5e6)
	asked := fmt.Sprint(rate)
	disk := lab.Disk(t, lab.FS("ext4"))
	file := fileIn(t, disk.Dir, "f")
	job := load.Job{Path: load.Direct, File: file, Block: 32 << 10, Size: directFile, For: 10 * time.Minute}
	cmd := exec.Command("weir", append([]string{"run", "--quiet", "--read", "3MB/s", "--name", "live", "--on", disk.Dir, "--", "weir", "__load"}, job.Args()...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(terminate)
		_ = cmd.Wait()
	})
	group := waitForGroup(t, "weir-live")
	written := func() float64 { return deviceRate(t, disk, time.Second) }
	lab.Free(t, "before set", float64(3*rate), written)
	weir(t, "set", group, "--write", asked, "--on", disk.Dir)
	time.Sleep(time.Second) // what the promise allows
	lab.Ratio(t, "after set", float64(rate), lab.Written, func() float64 { return deviceRate(t, disk, 3*time.Second) })
	shown := string(weir(t, "show", "--json", "--for", "0", group))
	if !strings.Contains(shown, `"rbps":3000000,"wbps":`+asked) {
		t.Errorf("show says %s, want the read limit untouched beside the new one", shown)
	}
	weir(t, "set", group, "--write", "max", "--on", disk.Dir)
	time.Sleep(time.Second)
	lab.Free(t, "after --write max", float64(2*rate), written)
	weir(t, "set", group, "--write", asked, "--on", disk.Dir)
	weir(t, "clear", group)
	time.Sleep(time.Second)
	lab.Free(t, "after clear", float64(2*rate), written)
	if shown := string(weir(t, "show", "--json", "--for", "0", group)); !strings.Contains(shown, `"devices":[]`) {
		t.Errorf("after clear, show says %s", shown)
	}
}
