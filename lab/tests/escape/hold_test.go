package escape_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// holdLimit is what the writers below may write, in MiB a second.
const holdLimit = 10

// What is written over another group's file is held with what is the group's own, and a
// command that writes only its own is never paused.
func TestRunHoldsWhatEscapes(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	t.Run("own", func(t *testing.T) {
		lab.Need(t, lab.Whole)
		if stops := held(t, disk, "dd", "if=/dev/zero", "of="+filepath.Join(disk.Dir, "own"), "bs=1M", "count=60", "conv=fsync"); stops != 0 {
			t.Errorf("it was paused %d times", stops)
		}
	})
	for _, owner := range []string{"alive", "removed", "root"} {
		t.Run(owner, func(t *testing.T) {
			if owner != "alive" {
				lab.Need(t, lab.Whole)
			}
			file := foreign(t, disk.Dir, owner, 100)
			if stops := held(t, disk, "dd", "if=/dev/zero", "of="+file, "bs=1M", "count=100", "conv=notrunc,fsync"); stops == 0 && owner == "alive" {
				t.Error("it was never paused")
			}
		})
	}
}

// The same however it is reached and written, and on each file system.
func TestRunHoldsEachWayToWrite(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Whole)
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind))
			disk := lab.Disk(t, lab.FS(kind))
			for name, write := range map[string]func(file string) []string{
				"dd": func(file string) []string {
					return []string{"dd", "if=/dev/zero", "of=" + file, "bs=1M", "count=100", "conv=notrunc,fsync"}
				},
				"hard link": func(file string) []string {
					if err := os.Link(file, file+".link"); err != nil {
						t.Fatal(err)
					}
					return []string{"dd", "if=/dev/zero", "of=" + file + ".link", "bs=1M", "count=100", "conv=notrunc,fsync"}
				},
				"bind mount": func(file string) []string {
					bound := t.TempDir()
					if err := unix.Mount(disk.Dir, bound, "", unix.MS_BIND, ""); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = unix.Unmount(bound, unix.MNT_DETACH) })
					return []string{"dd", "if=/dev/zero", "of=" + filepath.Join(bound, filepath.Base(file)), "bs=1M", "count=100", "conv=notrunc,fsync"}
				},
				"8 writers": func(file string) []string {
					return []string{"sh", "-c", `for i in 0 1 2 3 4 5 6 7; do dd if=/dev/zero of="$0" bs=64k count=200 seek=$((i*200)) conv=notrunc,fsync 2>/dev/null & done; wait`, file}
				},
				"mapping": func(file string) []string { return []string{"env", handVariable + "=mapped " + file, self(t)} },
				"io_uring": func(file string) []string {
					lab.Need(t, lab.IOUring)
					return []string{"env", handVariable + "=uring " + file, self(t)}
				},
			} {
				t.Run(name, func(t *testing.T) {
					file := foreign(t, disk.Dir, "alive", 100)
					held(t, disk, write(file)...)
					if err := os.Remove(file); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

// held runs a command that writes at least 60 MiB, and wants its limit to hold it: by its own
// time, and by the disk's.
func held(t *testing.T, disk *lab.TestDisk, args ...string) (stops uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "weir", append([]string{"run", "--json", "--write", fmt.Sprintf("%dMiB/s", holdLimit), "--on", disk.Dir, "--"}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	var doc struct {
		Elapsed float64 `json:"elapsed_seconds"`
		Written uint64  `json:"written_bytes"`
		Stops   uint64
		Devices []struct {
			Disk struct {
				Written uint64 `json:"written_bytes"`
			}
			Write struct {
				Held    string
				Escaped uint64 `json:"escaped_bytes"`
			}
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Devices) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	d := doc.Devices[0]
	ratio := float64(max(doc.Written, d.Disk.Written)) / doc.Elapsed / (holdLimit << 20)
	t.Logf("ratio %.3f, %d bytes written, %d by the disk, %d escaped, %d stops, %s\n%s", ratio, doc.Written, d.Disk.Written, d.Write.Escaped, doc.Stops, d.Write.Held, &said)
	if ratio < 0.95 || ratio > 1.05 {
		t.Errorf("%.3f of the limit, want 0.95 to 1.05", ratio)
	}
	if d.Write.Held != "held" {
		t.Errorf("weir run says %s", d.Write.Held)
	}
	return doc.Stops
}
