package pacer_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// On v1 a database waits once for what it commits, in the pacer or at the kernel's rule: what reaches the
// disk comes at the limit, whatever its journal is.
func TestCommitsArePaidOnce(t *testing.T) {
	for _, journal := range []string{"delete", "wal"} {
		t.Run(journal, func(t *testing.T) {
			lab.Need(t, lab.Whole, lab.Root, lab.V1, lab.Rates, lab.FS("ext4"), lab.Command("sqlite3"))
			const rate, inserts = 10_000_000, 20
			disk := lab.Disk(t, lab.FS("ext4"))
			file := filepath.Join(disk.Dir, "db")
			script := fmt.Sprintf("PRAGMA journal_mode=%s; PRAGMA synchronous=FULL; CREATE TABLE t (b);", journal) +
				strings.Repeat(" INSERT INTO t VALUES (randomblob(2000000));", inserts)
			lab.Ratio(t, journal, rate, lab.Written, func() float64 {
				if err := removeAll(file + "*"); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command("sync", "-f", disk.Dir).CombinedOutput(); err != nil {
					t.Fatalf("sync: %v: %s", err, out)
				}
				_, before := lab.DeviceBytes(t, disk.Number)
				took := paced(t, disk.Dir, rate, fmt.Sprintf("echo '%s' | sqlite3 %s >/dev/null", script, file))
				_, after := lab.DeviceBytes(t, disk.Number)
				t.Logf("%d bytes reached the disk in %s", after-before, took.Round(time.Millisecond))
				return float64(after-before) / took.Seconds()
			})
		})
	}
}
