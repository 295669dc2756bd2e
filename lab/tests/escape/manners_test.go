package escape_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// Where nothing escapes, the pacer pauses nobody. weir run never says held where the disk wrote more
// than the limit, nor NOT held, though its estimate may err: of what is compressed, or on another disk.
func TestNothingEscapes(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Whole)
	for name, c := range map[string]struct {
		fs   string
		args func(t *testing.T, disk *lab.TestDisk) []string
	}{
		"a minute of fresh files": {"ext4", func(t *testing.T, disk *lab.TestDisk) []string {
			return shell(`end=$(($(date +%s)+60)); i=0; while [ $(date +%s) -lt $end ]; do i=$((i+1)); dd if=/dev/zero of="$0"/$((i%4)) bs=64K count=32 conv=fsync 2>/dev/null; done`, disk.Dir)
		}},
		"what a backup has read": {"ext4", func(t *testing.T, disk *lab.TestDisk) []string {
			own := filepath.Join(disk.Dir, "own")
			backUp(t, own)
			return shell(`dd if=/dev/zero of="$0" bs=1M count=$1 conv=fsync; mv "$0" "$0.whole"; while [ ! -e "$0.read" ]; do sleep 0.1; done
				dd if=/dev/zero of="$0.whole" bs=1M count=$1 conv=notrunc,fsync`, own, fmt.Sprint(5*holdLimit(t)>>20))
		}},
		"compressed": {"btrfs", func(t *testing.T, disk *lab.TestDisk) []string {
			if err := unix.Mount("", disk.Dir, "", unix.MS_REMOUNT, "compress-force=zstd"); err != nil {
				t.Fatal(err)
			}
			return shell(`for i in 1 2 3 4; do dd if=/dev/zero of="$0" bs=1M count=$1 conv=notrunc,fsync; done`, filepath.Join(disk.Dir, "own"), fmt.Sprint(2*holdLimit(t)>>20))
		}},
		"a disk without a limit beside": {"xfs", func(t *testing.T, disk *lab.TestDisk) []string {
			beside := lab.Disk(t, lab.FS("ext4"))
			theirs := foreign(t, beside.Dir, "alive", 8*holdLimit(t)>>20)
			return shell(`dd if=/dev/zero of="$0" bs=1M count=$2 conv=notrunc,fsync; dd if=/dev/zero of="$1" bs=1M count=4 conv=fsync`, theirs, filepath.Join(disk.Dir, "own"), fmt.Sprint(8*holdLimit(t)>>20))
		}},
		"direct, 64 at a time": {"ext4", func(t *testing.T, disk *lab.TestDisk) []string {
			return []string{"env", handVariable + "=direct " + foreign(t, disk.Dir, "alive", 16), self(t)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := lab.Need(t, lab.FS(c.fs), lab.FS("ext4"))
			disk := lab.Disk(t, lab.FS(c.fs))
			doc := runUnder(t, disk, c.args(t, disk)...)
			if e.Has(string(lab.BPF)) && (doc.Stops != 0 || doc.Devices[0].Write.Escaped > mib) {
				t.Errorf("it was paused %d times; %d bytes escaped", doc.Stops, doc.Devices[0].Write.Escaped)
			}
			noFalseHeld(t, doc)
			if doc.Devices[0].Write.Held == "not_held" {
				t.Error("weir run says not held")
			}
		})
	}
}

// Lines that are appended to another group's log are charged to that group: they escape. Their
// pages are the writer's own, so that the kernel's counters tell it late.
func TestRunHoldsALog(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Whole, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	lines := func() []string {
		log := afresh(t, disk.Dir, "alive", mib)
		return shell(`exec dd if=/dev/zero of="$0" bs=64K count=$1 oflag=append conv=notrunc,fsync`, log, fmt.Sprint(10*holdLimit(t)/(64<<10)))
	}
	if e.Has(string(lab.BPF)) {
		held(t, disk, lines)
		return
	}
	noFalseHeld(t, runUnder(t, disk, lines()...))
}

// shell is a command that sh runs, with arguments from $0 on. What it says goes nowhere.
func shell(script string, args ...string) []string {
	return append([]string{"sh", "-c", "exec >/dev/null 2>&1; " + script}, args...)
}

// noFalseHeld checks that weir run says held only of what the disk has kept within the limit.
func noFalseHeld(t *testing.T, doc heldDocument) {
	t.Helper()
	most := (lab.Written.High*doc.Elapsed + lab.CatchUp.Seconds()) * float64(holdLimit(t))
	if wrote := doc.Devices[0].Disk.Written; doc.Devices[0].Write.Held == "held" && float64(wrote) > most {
		t.Errorf("weir run says held, and the disk wrote %d bytes in %.1f s", wrote, doc.Elapsed)
	}
}

// backUp has a group read a file into the page cache, once it is whole and on disk.
func backUp(t *testing.T, name string) {
	t.Helper()
	g := group(t, "backup")
	reads := in(t, g, shell(`while [ ! -e "$0.whole" ]; do sleep 0.1; done
		dd of="$0.whole" oflag=nocache conv=notrunc,fdatasync count=0; cat "$0.whole" && : >"$0.read"`, name)...)
	t.Cleanup(func() { kill(t, g, reads) })
}
