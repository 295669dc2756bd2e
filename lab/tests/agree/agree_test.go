package agree_test

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// places are the file systems that differ in how their writes get to the disk.
var places = []struct{ name, fs, options string }{
	{"ext4", "ext4", ""},
	{"xfs", "xfs", ""},
	{"btrfs", "btrfs", ""},
	{"ext4 data=journal", "ext4", "data=journal"},
}

// retries bounds how often a row is measured again that the machine was too busy for.
const retries = 2

// weir prove measures what weir why says of each path: held, or not held. Each file system
// has a disk of its own, and all are measured side by side.
func TestAgree(t *testing.T) {
	t.Parallel()
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.FS(p.fs))
			journal := p.options != "" // which is not the same on every kernel
			switch {
			case journal:
				lab.Need(t, lab.Whole, lab.Guest)
			case e.Cgroups.Mode == environ.Hybrid && e.Lane != "native" && p.name == "ext4":
				lab.Need(t, lab.Long) // disk I/O is v1's there
			case p.name == "ext4":
				lab.Need(t, lab.Once)
			default: // v1's writeback is the root group's, whatever the file system
				lab.Need(t, lab.OnceV2)
			}
			if p.name != "ext4" { // one is all that an emulated processor can do
				lab.Need(t, lab.Rates)
			}
			t.Parallel()
			disk := lab.Disk(t, lab.FS(p.fs))
			if p.options != "" {
				remount(t, disk, p.options)
			}
			rate := "4MB/s"
			if e.Lane == "qemu" || e.Has(string(lab.Systemd)) { // mapped writes do 3.4 MB/s in a full guest
				rate = "2MB/s"
			}
			if journal { // of which every write is to get above it
				agree(t, about(disk.Dir, "--write", "1MB/s"))
			} else {
				agree(t, about(disk.Dir, "--write", rate, "--read", rate))
			}
		})
	}
}

func remount(t *testing.T, disk *lab.TestDisk, options string) {
	t.Helper()
	if err := unix.Unmount(disk.Dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(disk.Node, disk.Dir, disk.FS, unix.MS_NOATIME, options); err != nil {
		t.Fatal(err)
	}
}

// A question is what both are asked: their arguments.
type question struct{ why, prove []string }

// about asks about limits on a directory.
func about(dir string, limits ...string) question {
	return question{append([]string{dir}, limits...), append([]string{"--on", dir}, limits...)}
}

// agree compares both.
func agree(t *testing.T, q question) {
	t.Helper()
	said := ask(t, q.why...)
	proof := prove(t, append(slices.Clone(q.prove), "--all", "--for", "2s")...)
	for _, c := range said.Matrix {
		if c.Held == "unlimited" {
			continue
		}
		r, there := proof.row(c.Path, c.Read)
		if !there {
			t.Errorf("weir prove has no row for %s", c)
			continue
		}
		// Uncharged: the machine was so busy that the disk did no more than the limit. Others:
		// so that the journal's writes, and not the limit, were most of it; nobody else is
		// there. Large, hung: the window was too short for what btrfs does at once (on v1 too,
		// where the writer itself may have to write back, in requests of 24 MB). Unwritten: too
		// short for a journal's commit. Slow: a guest's disks are served by one thread of the host, and
		// beside a flood on another disk small requests in turn got 0.73 and 0.79 of a limit. Too much of
		// what the pacer holds: memory takes 1 MB in each millisecond in which the pacer has no processor,
		// and the windows are short.
		for again := 0; again < retries && (slices.Contains([]string{"busy", "uncharged", "others", "large", "hung", "unwritten", "slow"}, r.Reason) ||
			r.Reason == "too-much" && c.Mechanism == "pacer"); again++ {
			t.Logf("%s is measured again: %s", r.Name, r.Why)
			lab.AwaitQuiet(t)
			window := "2s"
			if r.Reason == "large" || r.Reason == "hung" || r.Reason == "unwritten" {
				window = "8s"
			}
			r, _ = prove(t, append(slices.Clone(q.prove), "--for", window, "--paths", c.Path)...).row(c.Path, c.Read)
		}
		if r.Reason == "busy" {
			t.Logf("%s cannot be told: the machine was too busy, %d times", c, retries+1)
			continue
		}
		compare(t, said, c, r)
	}
}

// verdicts are what a proof may come to, by what weir why says.
var verdicts = map[string][]string{
	"yes":    {"held", "held at the device"},
	"device": {"held", "held at the device"},
	"no":     {"not held"},
}

func compare(t *testing.T, said report, c cell, r row) {
	t.Helper()
	if !slices.Contains(verdicts[c.Held], r.Verdict) {
		t.Errorf("%s: weir why says %q %v, and weir prove %q (%s: %s), %.2f of the limit: writer %.0f, group %.0f, disk %.0f bytes/s", c, c.Held, said.codes(c.Findings),
			r.Verdict, r.Reason, r.Why, r.Ratio, r.Writer.Rate, r.Cgroup.Rate, r.Disk.Rate)
		return
	}
	if r.Verdict == "not held" && len(r.Findings) == 0 {
		t.Errorf("%s: not held, and no finding is named", c)
	}
	for _, n := range r.Findings {
		if !slices.Contains(c.Findings, n) {
			t.Errorf("%s: weir prove names finding %d, and weir why has %v there", c, n, c.Findings)
		}
	}
}

func (c cell) String() string { return fmt.Sprintf("%s %s", c.Path, c.direction()) }
