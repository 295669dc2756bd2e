package escape_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/lab"
)

// A database in WAL mode that another group has made and has open: its log and its pages are
// both that group's.
func TestRunHoldsADatabase(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.Whole, lab.FS("ext4"), lab.Command("sqlite3"))
	for _, sync := range []string{"NORMAL", "FULL"} {
		t.Run(sync, func(t *testing.T) {
			disk, owner := lab.Disk(t, lab.FS("ext4")), group(t, "owner")
			db := filepath.Join(disk.Dir, "db")
			const row, rows, share = 32 << 10, 256, 16 // bytes; how many; and in one transaction
			run(t, owner, "sqlite3", db, fmt.Sprintf(`PRAGMA journal_mode=WAL; CREATE TABLE t(id INTEGER PRIMARY KEY, b BLOB);
				WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM n WHERE i<%d) INSERT INTO t SELECT i, randomblob(%d) FROM n;`, rows-1, row))
			reads := in(t, owner, "sh", "-c", `(echo 'SELECT count(*) FROM t;'; exec sleep 1000) | exec sqlite3 "$0"`, db) // keeps the log
			t.Cleanup(func() { kill(t, owner, reads) })
			lab.Await(t, 10*time.Second, "the log", func() bool { _, err := os.Stat(db + "-wal"); return err == nil })

			var script strings.Builder
			fmt.Fprintf(&script, "PRAGMA synchronous=%s;\n", sync)
			for i := range 14 * holdLimit(t) / (2 * row * share) { // each byte is written twice: to the log and to its page
				fmt.Fprintf(&script, "UPDATE t SET b=randomblob(%d) WHERE id/%d=%d;\n", row, share, i%(rows/share))
			}
			// What the last moment was too fast is paid for before the shell goes on.
			paid := []string{"sh", "-c", `sqlite3 -cmd ".timeout 10000" "$0" <"$1" >/dev/null; sleep 0.1`, db, file(t, script.String())}
			held(t, disk, func() []string { return paid })
		})
	}
}

// git gc writes what others' objects have into a file of its own, which the kernel holds. Nobody is
// paused for that. The disk gets as much as the limit allows, from one request to another: a
// request can be of 8 MiB.
func TestRunHoldsGit(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Whole, lab.FS("ext4"), lab.Command("git"))
	disk, owner := lab.Disk(t, lab.FS("ext4")), group(t, "owner")
	repository := filepath.Join(disk.Dir, "repository")
	const object = 512 << 10
	run(t, owner, "sh", "-ec", `git init -q "$0"; cd "$0"; for i in $(seq $1); do head -c $2 /dev/urandom >$i; done
		git config user.name n; git config user.email e; git config core.compression 0; git config pack.window 0
		git add .; git commit -qm all; sync`, repository, fmt.Sprint(14*holdLimit(t)/object), fmt.Sprint(object))
	lab.Ratio(t, "the disk", float64(holdLimit(t)), lab.Written, func() float64 {
		disks := lab.WatchWrites(lab.Done(t, disk.Number))
		doc := runHeld(t, disk, "git", "-C", repository, "gc", "-q")
		if doc.Devices[0].Write.Escaped > mib || doc.Stops > 0 {
			t.Errorf("%d bytes escaped, and it was paused %d times", doc.Devices[0].Write.Escaped, doc.Stops)
		}
		return disks.Rate(t)
	})
}

// file makes a file of a text.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// kill ends all processes of a group, the first of which was started here.
func kill(t *testing.T, g cgroupfs.Group, first interface{ Wait() error }) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.Dir(), "cgroup.kill"), []byte("1"), 0); err != nil {
		t.Error(err)
	}
	_ = first.Wait() // killed
}
