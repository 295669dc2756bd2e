package agree_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-io/weir/lab"
)

// weir why knows what weir itself holds on v1, where the kernel does not, and weir prove
// measures it.
func TestAgreeWhereWeirHolds(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Once, lab.Rates, lab.Loop, lab.FS("ext4"))
	t.Parallel()
	const rate = "4MB/s"
	t.Run("volume", func(t *testing.T) {
		t.Parallel()
		disk := lab.Disk(t, lab.FS("ext4"))
		at := filepath.Join(disk.Dir, "volume")
		run(t, "volume", "create", at, "--size", "200MiB", "--on", disk.Dir, "--write", rate)
		t.Cleanup(func() {
			run(t, "volume", "down", at)
			run(t, "volume", "delete", at)
		})
		q := about(at, "--write", rate, "--read", rate)
		says(t, q, "volume")
		agree(t, q)
	})
	t.Run("pacer", func(t *testing.T) {
		t.Parallel()
		disk := lab.Disk(t, lab.FS("ext4"))
		group := filepath.Join(e.Cgroups.Blkio, "agree-paced")
		lab.Cgroup(t, group)
		t.Cleanup(func() { run(t, "clear", "cgroup:/agree-paced") })
		run(t, "set", "cgroup:/agree-paced", "--write", rate, "--read", rate, "--on", disk.Dir, "--hold", "pacer")
		q := question{[]string{"cgroup:/agree-paced", "--on", disk.Dir}, []string{"cgroup:/agree-paced", "--on", disk.Dir}}
		says(t, q, "paced")
		agree(t, q)
	})
}

// says checks that weir why names what holds buffered writes.
func says(t *testing.T, q question, code string) {
	t.Helper()
	said := ask(t, q.why...)
	i := slices.IndexFunc(said.Matrix, func(c cell) bool { return c.Path == "buffered" && !c.Read })
	codes := said.codes(said.Matrix[i].Findings)
	if said.Matrix[i].Held == "no" || !slices.Contains(codes, code) && !slices.Contains(codes, "root-rule") {
		t.Errorf("weir why says of buffered writes %q, because of %v", said.Matrix[i].Held, codes)
	}
}

func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("weir", args...).CombinedOutput(); err != nil {
		t.Errorf("weir %v: %v\n%s", args, err, out)
	}
}
