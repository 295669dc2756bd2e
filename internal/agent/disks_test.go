package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/agent/reconcile"
)

// A disk that is mounted while a container runs gets the limits of its plan, without waiting for a comparison.
func TestLimitsADiskThatIsMountedLater(t *testing.T) {
	d := prepare(t, small)
	h, err := d.options.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const vdb = "26 21 254:16 / /data rw,relatime - xfs /dev/vdb rw,inode64\n"
	edit := func(pid string, change func(text string) string) {
		t.Helper()
		file := filepath.Join(h.Root, "proc", pid, "mountinfo")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(change(string(text))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("1", func(text string) string { return strings.Replace(text, vdb, "", 1) })
	d.disks.Every, d.disks.Gather = 2*time.Millisecond, time.Millisecond
	d.start()
	rules := func() string {
		text, err := os.ReadFile(filepath.Join(h.Root, "sys/fs/cgroup/docker", webID, "io.max"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	d.until("in force", has("small", reconcile.InForce))
	if strings.Contains(rules(), "254:16 ") {
		t.Fatalf("%s: it is not mounted yet", rules())
	}
	edit("4900", func(text string) string { return text + "440 430 254:16 / /data rw,relatime - xfs /dev/vdb rw\n" })
	edit("1", func(text string) string { return text + vdb })
	d.until("limited", func(Status) bool {
		return strings.Contains(rules(), "254:16 ") && strings.Count(rules(), "wbps=1000000") == 2
	})
}
