package escape_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// holdLimit is what the writers below may write, in bytes a second.
func holdLimit(t *testing.T) int { return lab.Scaled(lab.Here(t), 10<<20) }

// The pacer holds writes to another group's file together with the group's own writes. It
// never pauses a command that writes only to its own files.
func TestRunHoldsWhatEscapes(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	t.Run("own", func(t *testing.T) {
		args := overwrite(filepath.Join(disk.Dir, "own"), 3*holdLimit(t))
		if doc := runHeld(t, disk, args...); doc.Stops != 0 || doc.ratio(holdLimit(t)) > lab.Written.High {
			t.Errorf("it was paused %d times, and got %.3f of its limit", doc.Stops, doc.ratio(holdLimit(t)))
		}
	})
	for _, owner := range []string{"alive", "removed", "root"} {
		t.Run(owner, func(t *testing.T) {
			seconds := 6
			if owner != "alive" {
				lab.Need(t, lab.Whole)
				seconds = 10
			}
			held(t, disk, func() []string {
				size := seconds * holdLimit(t)
				return overwrite(afresh(t, disk.Dir, owner, size), size)
			})
		})
	}
}

// Without BPF weir says before any I/O that writes to other groups' files are not held, and
// afterwards that they were not. It pauses nobody.
func TestRunSaysWhatItDoesNotHold(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Lane("uml"), lab.Once, lab.FS("ext4")) // whose kernels have no BPF
	disk := lab.Disk(t, lab.FS("ext4"))
	limits := []string{"--write", "10MiB/s", "--on", disk.Dir, "--"}
	doc, said := weirRun(t, append(limits, overwrite(afresh(t, disk.Dir, "alive", 40*mib), 40*mib)...)...)
	before, after, _ := strings.Cut(said, "records in")
	if !strings.Contains(before, "expected NOT to hold: writes to other groups' files") || !strings.Contains(before, "needs BPF") || !strings.Contains(after, "NOT held") {
		t.Errorf("weir run said %q", said)
	}
	if doc.Devices[0].Write.Held != "not_held" || doc.Stops != 0 {
		t.Errorf("%+v", doc)
	}
	if doc, said := weirRun(t, append(limits, overwrite(filepath.Join(disk.Dir, "own"), 20*mib)...)...); doc.Devices[0].Write.Held != "held" || doc.Stops != 0 {
		t.Errorf("its own file: %+v, %q", doc, said)
	}
}

// overwrite is a dd that writes so much of a file, from its beginning.
func overwrite(file string, size int) []string {
	return []string{"dd", "if=/dev/zero", "of=" + file, "bs=512K", fmt.Sprintf("count=%d", size/(512<<10)), "conv=notrunc,fsync"}
}

// afresh is foreign, of a file that may be there from before.
func afresh(t *testing.T, dir, owner string, size int) string {
	t.Helper()
	for _, name := range []string{owner, owner + ".link"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return foreign(t, dir, owner, size>>20)
}

// The pacer holds writes to another group's file in each way of writing, and on each file
// system.
func TestRunHoldsEachWayToWrite(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.Whole)
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind))
			disk := lab.Disk(t, lab.FS(kind))
			for name, write := range map[string]func(t *testing.T, file string) []string{
				"dd": func(t *testing.T, file string) []string {
					return overwrite(file, 10*holdLimit(t))
				},
				"hard link": func(t *testing.T, file string) []string {
					if err := os.Link(file, file+".link"); err != nil {
						t.Fatal(err)
					}
					return overwrite(file+".link", 10*holdLimit(t))
				},
				"bind mount": func(t *testing.T, file string) []string {
					bound := t.TempDir()
					if err := unix.Mount(disk.Dir, bound, "", unix.MS_BIND, ""); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = unix.Unmount(bound, unix.MNT_DETACH) })
					return overwrite(filepath.Join(bound, filepath.Base(file)), 10*holdLimit(t))
				},
				"8 writers": func(t *testing.T, file string) []string {
					blocks := strconv.Itoa(10 * holdLimit(t) / 8 / (64 << 10))
					return []string{"sh", "-c", `for i in 0 1 2 3 4 5 6 7; do dd if=/dev/zero of="$0" bs=64k count=$1 seek=$((i*$1)) conv=notrunc,fsync 2>/dev/null & done; wait`, file, blocks}
				},
				"mapping": func(t *testing.T, file string) []string {
					return []string{"env", handVariable + "=mapped " + file, self(t)}
				},
				"io_uring": func(t *testing.T, file string) []string {
					lab.Need(t, lab.IOUring)
					return []string{"env", handVariable + "=uring " + file, self(t)}
				},
			} {
				t.Run(name, func(t *testing.T) {
					held(t, disk, func() []string { return write(t, afresh(t, disk.Dir, "alive", 10*holdLimit(t))) })
				})
			}
		})
	}
}

// held runs commands, and wants their limit to hold them: by their own time, and by the
// disk's. They overwrite what is another group's.
func held(t *testing.T, disk *lab.TestDisk, args func() []string) {
	t.Helper()
	limit := holdLimit(t)
	lab.Ratio(t, "own and escaped", float64(limit), lab.Written, func() float64 {
		doc := runHeld(t, disk, args()...)
		if doc.Stops == 0 {
			t.Error("it was never paused")
		}
		return doc.ratio(limit) * float64(limit)
	})
}

// Pages of another group's file, far from each other, are charged what the disk gets, and not
// the folios that they are in.
func TestRunHoldsPages(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.Newest)
	for _, kind := range []string{"ext4", "xfs"} {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind), lab.BPF)
			if kind != "ext4" {
				lab.Need(t, lab.Whole)
			}
			const seconds = 6
			disk := lab.Disk(t, lab.FS(kind))
			size := seconds * holdLimit(t) * pagesPart
			file := foreign(t, disk.Dir, "alive", size>>20)
			lab.Ratio(t, "pages", float64(holdLimit(t)), lab.Written, func() float64 {
				doc := runHeld(t, disk, "env", handVariable+"=pages "+file, self(t))
				return float64(size/pagesPart) / doc.Elapsed
			})
		})
	}
}

// A heldDocument is of weir run's what is wanted here.
type heldDocument struct {
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

// ratio is what was written, by the processes or the disk, as part of a limit.
func (d heldDocument) ratio(limit int) float64 {
	return float64(max(d.Written, d.Devices[0].Disk.Written)) / d.Elapsed / float64(limit)
}

// runHeld runs a command under the limit, which it is to say was held.
func runHeld(t *testing.T, disk *lab.TestDisk, args ...string) heldDocument {
	t.Helper()
	doc := runUnder(t, disk, args...)
	if got := doc.Devices[0].Write.Held; got != "held" {
		t.Errorf("weir run says %s", got)
	}
	return doc
}

// runUnder runs a command under the limit.
func runUnder(t *testing.T, disk *lab.TestDisk, args ...string) (doc heldDocument) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "weir", append([]string{"run", "--json", "--write", fmt.Sprint(holdLimit(t)), "--on", disk.Dir, "--"}, args...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Devices) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	d := doc.Devices[0]
	t.Logf("ratio %.3f, %d bytes written, %d by the disk, %d escaped, %d stops, %s\n%s", doc.ratio(holdLimit(t)), doc.Written, d.Disk.Written, d.Write.Escaped, doc.Stops, d.Write.Held, &said)
	return doc
}
