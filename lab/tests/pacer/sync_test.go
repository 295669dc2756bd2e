package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// On v1 a group waits once for data that it syncs: for the pacer or for the kernel's rule,
// never for both, whatever the order.
func TestSyncedIsPaidOnce(t *testing.T) {
	const rate, mb = 10_000_000, 1 << 20
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		script func(file string, size int) string // dirties so many bytes, and syncs them
	}{
		{"fsync", func(file string, size int) string { return fill(file, size) + " conv=fsync" }},
		{"sync FILE", func(file string, size int) string { return fill(file, size) + "; sync -d " + file }},
		{"O_DSYNC after buffered", func(file string, size int) string {
			return fmt.Sprintf("%s; %s=dsync %s %s2 %d", fill(file, size/2), writer, program, file, size/2)
		}},
		{"commits of 1 MiB", func(file string, size int) string {
			return fmt.Sprintf("for i in $(seq %d); do %s conv=fsync,notrunc; done", size/mb, fill(file+"$i", mb))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Once, lab.FS("ext4"))
			if c.name == "sync FILE" || c.name == "commits of 1 MiB" { // fsync is what both end with in the kernel
				lab.Need(t, lab.Whole)
			}
			const seconds = 5
			disk := lab.Disk(t, lab.FS("ext4"))
			lab.Ratio(t, c.name, rate, band(e), func() float64 {
				own := syncs(t, disk.Dir+"/free", rate*seconds)
				if err := removeAll(disk.Dir + "/f*"); err != nil {
					t.Fatal(err)
				}
				took := paced(t, disk.Dir, rate, c.script(filepath.Join(disk.Dir, "f"), rate*seconds))
				t.Logf("%s, of which the disk takes %s without a limit", took, own)
				took -= min(own, max(0, took-seconds*time.Second))
				return rate * seconds / took.Seconds()
			})
		})
	}
}

// The first example of README.md leaves all of its 100 MB in the file, at the limit.
func TestTheFirstExample(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Root, lab.V1, lab.Rates, lab.FS("ext4"))
	const rate, bytes = 10_000_000, 100 << 20
	disk := lab.Disk(t, lab.FS("ext4"))
	file := filepath.Join(disk.Dir, "f")
	lab.Ratio(t, "the example", rate, lab.Written, func() float64 {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		t.Log(weir(t, "run", "--write", "10MB/s", "--on", disk.Dir, "--", "dd", "if=/dev/zero", "of="+file, "bs=1M", "count=100", "iflag=fullblock", "conv=fsync"))
		took := time.Since(began)
		if got := size(file); got != bytes {
			t.Errorf("the file has %d bytes, want %d", got, bytes)
		}
		return bytes / took.Seconds()
	})
}

// syncs is how long a disk takes for an fsync of so many bytes, without a limit.
func syncs(t *testing.T, file string, size int) time.Duration {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// writeSynced writes with O_DSYNC.
func writeSynced(f *os.File, bytes int) error {
	synced, err := os.OpenFile(f.Name(), os.O_WRONLY|unix.O_DSYNC, 0)
	if err != nil {
		return err
	}
	for piece := make([]byte, 16384); bytes > 0; bytes -= len(piece) {
		if _, err := synced.Write(piece); err != nil {
			return err
		}
	}
	return synced.Close()
}

func removeAll(pattern string) error {
	files, err := filepath.Glob(pattern)
	for _, file := range files {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return err
}

// The kernel's rule is as before once an fsync has passed it, also if the pacer and its
// guards are killed meanwhile.
func TestALoanIsRepaid(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.NoSystemd, lab.Newest, lab.FS("ext4"))
	fewer(t, e)
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(e, 40<<20)
	group := filepath.Join(e.Cgroups.Blkio, "lab-loan")
	lab.Cgroup(t, group)
	file := filepath.Join(disk.Dir, "f")
	// Each round is a loan, of a tenth of a second of the rate.
	loop := "echo $$ > " + group + "/cgroup.procs; while :; do " + fill(file, rate/10) + " conv=fsync; done"
	writer := exec.Command("sh", "-c", loop)
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = writer.Process.Kill()
		_ = exec.Command("weir", "clear", "cgroup:/lab-loan").Run() // else it may be stopped, and waited for without an end
		_ = writer.Wait()
	}()
	lab.Await(t, 20*time.Second, "the first write", func() bool { return size(file) > 0 })
	weir(t, "set", "cgroup:/lab-loan", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--hold", "pacer")
	rule := func() uint64 {
		text, err := os.ReadFile(group + "/blkio.throttle.write_bps_device")
		if err != nil {
			t.Fatal(err)
		}
		_, is, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		n, err := strconv.ParseUint(is, 10, 64)
		if err != nil {
			t.Fatalf("the rule is %q: %v", text, err)
		}
		return n
	}
	raised := func() bool { return rule() != uint64(rate) }
	loan := func() { // which takes 25 ms and more
		t.Helper()
		for began := time.Now(); !raised(); time.Sleep(time.Millisecond) {
			if time.Since(began) > e.Patience(20*time.Second) {
				t.Fatal("nothing is lent")
			}
		}
	}
	for i := range lab.Times(t, "WEIR_KILLS", 3) {
		loan()
		if shown := weir(t, "show", "cgroup:/lab-loan", "--for", "0"); strings.Contains(shown, "TB/s") {
			t.Errorf("weir show says %q", shown)
		}
		loan()
		whom := [][]string{nil, {"__pacer"}, {"__pacer", "__guard"}}[i%3]
		for _, arg := range whom {
			send(t, 9, lab.Called(t, arg)...)
		}
		if len(whom) == 2 { // nobody is left: the next weir does it, however long that one takes to start
			weir(t, "show", "--for", "0")
		}
		lab.Await(t, stoppedMax(e), fmt.Sprintf("the rule to be back after a kill of %v", whom), func() bool { return !raised() })
		lab.Await(t, 20*time.Second, "another pacer", func() bool { return len(lab.Called(t, "__pacer")) == 1 && len(lab.Called(t, "__guard")) == guards })
	}
	weir(t, "clear", "cgroup:/lab-loan")
}
