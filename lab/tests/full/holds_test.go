package full

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// holds has weir limit a target that writes to a disk as fast as it can: on v2 through
// the page cache, on v1 directly. Its group is at dir. set must say what is said of its
// owner.
func holds(t *testing.T, e environ.Environ, disk *lab.TestDisk, spec, dir, said string) {
	t.Helper()
	rate := lab.Scaled(e, 10e6)
	file, want, counter := "io.max", ruleOf(e, rate), lab.Charged(dir, disk.Number)
	if e.Cgroups.Blkio != "" {
		file, counter = "blkio.throttle.write_bps_device", lab.Done(t, disk.Number)
	}
	rule := func() string { return ruleIn(t, filepath.Join(dir, file), disk.Number) }
	if _, text := mustWeir(t, "set", spec, "--write", fmt.Sprint(rate), "--on", disk.Dir); !strings.Contains(text, said) {
		t.Errorf("it said nothing of %q: %s", said, text)
	}
	if got := rule(); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	time.Sleep(2 * time.Second) // what the promise allows
	// The next request of 8 MiB comes later where the disk had been given much before.
	from, _ := counter()
	lab.Await(t, 20*time.Second, "a write under the limit", func() bool { now, _ := counter(); return now > from })
	lab.Ratio(t, "after set", float64(rate), lab.Written, func() float64 {
		arrivals := watchLimited(t, e, dir, disk)
		return arrivals.RateOver(t, 6*time.Second)
	})
	if shown, _ := mustWeir(t, "show", "--for", "0", spec); !strings.HasPrefix(shown, spec+"  cgroup v") || !strings.Contains(shown, disk.Node) {
		t.Errorf("weir show:\n%s", shown)
	}
	if got, _ := mustWeir(t, "__complete", "set", spec[:len(spec)-1]); !strings.HasPrefix(got, spec+"\n") {
		t.Errorf("completion of %s: %q", spec[:len(spec)-1], got)
	}
	if got, _, _ := weir(t, "why", spec); !strings.HasPrefix(got, spec+" → cgroup ") {
		t.Errorf("weir why: %q", got)
	}
	var proof struct {
		Rows []struct{ Verdict, Reason, Why string }
	}
	lab.Prove(t, &proof, spec, "--observe", "4s")
	// Writeback comes in requests of 8 MiB here, of which one more or less may be too many
	// to tell.
	if r := proof.Rows; len(r) != 1 || !strings.HasPrefix(r[0].Verdict, "held") && r[0].Reason != "large" {
		t.Errorf("weir prove: %+v", r)
	}
	mustWeir(t, "clear", spec)
	if got := rule(); got != "" {
		t.Errorf("after clear the rule is %q", got)
	}
}

// watchLimited watches what the group at dir, which is limited, writes to a disk.
func watchLimited(t *testing.T, e environ.Environ, dir string, disk *lab.TestDisk) *lab.Arrivals {
	t.Helper()
	if e.Cgroups.Blkio != "" {
		return lab.WatchWrites(lab.Done(t, disk.Number))
	}
	return lab.WatchWriteback(dir, disk.Number)
}
