package pacer_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// newcomerRate is the limit of a group that others join, in bytes a second.
const newcomerRate = 10_000_000

// A process that joins a paced group later is held with the others, from its first byte on, whoever
// puts it there: somebody else while it writes, cgexec, or itself from within the namespaces of a
// process that is in the group.
func TestNewcomersArePaced(t *testing.T) {
	var before int64 // what the newcomer had written when it was to be put there
	for name, start := range map[string]func(t *testing.T, o owned, file string) *exec.Cmd{
		"by hand": func(t *testing.T, o owned, file string) *exec.Cmd {
			// It writes before it is put there, and goes on.
			cmd := begun(t, "sh", "-c", "exec "+fill(file, 4<<30))
			lab.Await(t, 5*time.Second, "its first write", func() bool { return size(file) > 0 })
			before = size(file)
			put(t, o, cmd.Process.Pid)
			return cmd
		},
		"cgexec": func(t *testing.T, o owned, file string) *exec.Cmd {
			lab.Need(t, lab.Command("cgexec"), lab.V1)
			return begun(t, "cgexec", append([]string{"-g", "blkio:" + strings.TrimPrefix(o.target, "cgroup:")}, strings.Fields(fill(file, 4<<30))...)...)
		},
		"nsenter": func(t *testing.T, o owned, file string) *exec.Cmd {
			lab.Need(t, lab.Command("nsenter"), lab.Command("unshare"))
			own := begun(t, "unshare", "--mount", "--uts", "sleep", "600")
			lab.Await(t, 5*time.Second, "a process in namespaces of its own", func() bool {
				theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/uts", own.Process.Pid))
				ours, failed := os.Readlink("/proc/self/ns/uts")
				return err == nil && failed == nil && theirs != ours
			})
			return begun(t, "nsenter", "--target", fmt.Sprint(own.Process.Pid), "--mount", "--uts", "sh", "-c", "echo 0 > "+o.procs+"; exec "+fill(file, 4<<30))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := lab.Need(t, lab.Whole, lab.Root, lab.NoSystemd, lab.Rates, lab.FS("ext4"))
			o, disk := joined(t, e)
			file := filepath.Join(disk.Dir, "new")
			var second float64 // the first one, of the last measurement
			lab.Ratio(t, "the newcomer", newcomerRate, newcomers(e), func() float64 {
				cmd := start(t, o, file)
				defer func() {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					_ = os.Remove(file)
				}()
				lab.Await(t, 5*time.Second, "its first write", func() bool { return size(file) > 0 })
				first := int64(0)
				if name == "by hand" {
					first = size(file)
				}
				began := time.Now()
				time.Sleep(time.Second)
				second = float64(size(file)-first) / newcomerRate / time.Since(began).Seconds()
				time.Sleep(4 * time.Second)
				rate, all := float64(size(file)-first)/time.Since(began).Seconds(), float64(size(file)-before)/time.Since(began).Seconds()
				if name == "by hand" && rate < newcomerRate { // it pays for what it wrote between the kernel's move and the first figure, too
					rate = min(all, newcomerRate)
				}
				return rate
			})
			t.Logf("in its first second: %.2f", second)
			if second > 1.3 {
				t.Errorf("in its first second it wrote %.2f of the limit", second)
			}
			weir(t, "clear", o.target)
		})
	}
}

// Twenty processes a second are put into a paced group from outside, and each writes a megabyte and ends.
// Together they are held as well, though many have ended before anybody looks.
func TestManyNewcomersArePaced(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Root, lab.NoSystemd, lab.Rates, lab.FS("ext4"))
	o, disk := joined(t, e)
	const seconds, each = 5, 20
	lab.Ratio(t, "the newcomers", newcomerRate, newcomers(e), func() float64 {
		var all []*exec.Cmd
		var files []string
		began := time.Now()
		for i := 0; time.Since(began) < seconds*time.Second; i++ {
			file := filepath.Join(disk.Dir, "new"+strconv.Itoa(i))
			cmd := exec.Command("sh", "-c", "read go; exec "+strings.Replace(fill(file, 1<<20), "bs=16384 count=64", "bs=1M count=1", 1))
			stdin, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			all, files = append(all, cmd), append(files, file)
			put(t, o, cmd.Process.Pid)
			if _, err := io.WriteString(stdin, "\n"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(began.Add(time.Duration(i+1) * time.Second / each)))
		}
		written := int64(0)
		for _, file := range files {
			written += size(file)
		}
		took := time.Since(began)
		t.Logf("%d newcomers have written %d bytes", len(all), written)
		for i, cmd := range all {
			_ = cmd.Process.Kill() // most have ended
			_ = cmd.Wait()
			_ = os.Remove(files[i])
		}
		time.Sleep(3 * time.Second) // what is owed is paid for before they are measured once more
		return float64(written) / took.Seconds()
	})
	weir(t, "clear", o.target)
}

// newcomers is the band for what newcomers write.
func newcomers(e environ.Environ) lab.Band { return lab.Band{Low: band(e).Low, High: 1.1} }

// joined is a paced group that owes nothing, for others to join.
func joined(t *testing.T, e environ.Environ) (owned, *lab.TestDisk) {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-newcomer")
	weir(t, "set", o.target, "--write", fmt.Sprint(newcomerRate), "--on", disk.Dir, "--hold", "pacer")
	if err := o.writer.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 20*time.Second, "the end of the writer's commands", func() bool { // they would share the limit
		text, err := os.ReadFile(o.procs)
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range strings.Fields(string(text)) {
			number, err := strconv.Atoi(pid)
			if err != nil {
				t.Fatal(err)
			}
			send(t, unix.SIGKILL, number)
		}
		return len(text) == 0
	})
	time.Sleep(2 * time.Second) // what it wrote last is counted by then
	lab.Await(t, 20*time.Second, "its debt to be paid", func() bool {
		seen, err := pacer.Client{State: state.At("/")}.Seen(o.paced().Limited)
		if err != nil {
			t.Fatal(err)
		}
		return seen.Owes <= 0
	})
	return o, disk
}

// begun starts a command, which is killed at the end of the test.
func begun(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

func put(t *testing.T, o owned, pid int) {
	t.Helper()
	if err := os.WriteFile(o.procs, fmt.Append(nil, pid), 0); err != nil {
		t.Fatal(err)
	}
}
