package boot_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/mkfs"
)

// quotaSize is what the container and a directory may store, in bytes.
const quotaSize = 50_000_000

// quotaDir is where a disk with project quotas is mounted at each boot.
func quotaDir(kind string) string { return "/srv/" + kind }

// mountAtBoot gives Docker's files an XFS, and a directory an ext4.
func mountAtBoot(t *testing.T, e environ.Environ) {
	t.Helper()
	for _, kind := range []string{"xfs", "ext4"} {
		i := slices.IndexFunc(e.Disks, func(d environ.Disk) bool { return d.FS == kind })
		if i < 0 {
			t.Fatalf("there is no disk with %s", kind)
		}
		node, dir := e.Disks[i].Node, quotaDir(kind)
		if err := mkfs.Format(context.Background(), kind, node, true); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		unit := "[Unit]\nDefaultDependencies=no\nBefore=docker.service multi-user.target\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/mount -o prjquota " + node + " " + dir + "\n[Install]\nWantedBy=multi-user.target\n"
		if err := os.WriteFile("/etc/systemd/system/weir-boot-"+kind+".service", []byte(unit), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, "systemctl", "enable", "--now", "weir-boot-"+kind+".service")
	}
}

// quotasHold checks quotas that were set before the boot: they bind, and can be set again.
func quotasHold(t *testing.T) {
	t.Helper()
	show := func() map[string]uint32 {
		var doc struct {
			Quotas []struct {
				Target, State string
				Project       uint32
				Limit         struct{ Bytes uint64 }
			}
		}
		if err := json.Unmarshal([]byte(run(t, weirPath, "quota", "show", "--json")), &doc); err != nil {
			t.Fatal(err)
		}
		projects := map[string]uint32{}
		for _, q := range doc.Quotas {
			if q.State != "set" || q.Limit.Bytes/4096 != quotaSize/4096 {
				t.Errorf("after a boot: %+v", q)
			}
			projects[q.Target] = q.Project
		}
		return projects
	}
	dir := quotaDir("ext4") + "/data"
	before := show()
	if len(before) != 2 || before["docker:web"] == 0 || before[dir] == 0 {
		t.Fatalf("after a boot the quotas are %v", before)
	}
	if out, err := exec.Command("docker", "exec", "web", "/bin/busybox", "dd", "if=/dev/zero", "of=/big", "bs=4096", "count=16000", "conv=fsync").CombinedOutput(); err == nil {
		t.Errorf("after a boot the container goes beyond its quota: %s", out)
	}
	// ext4 does not bind who has CAP_SYS_RESOURCE.
	file := filepath.Join(dir, "big")
	out, err := exec.Command("setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "dd", "if=/dev/zero", "of="+file, "bs=4096", "count=16000", "conv=fsync").CombinedOutput()
	info, statErr := os.Stat(file)
	if statErr != nil {
		t.Fatal(statErr)
	}
	if err == nil || info.Size() > quotaSize || info.Size() < quotaSize-5*4096 {
		t.Errorf("after a boot the directory takes %d bytes: %v: %s", info.Size(), err, out)
	}
	run(t, weirPath, "quota", "set", "docker:web", "60MB")
	run(t, weirPath, "quota", "set", dir, "60MB")
	run(t, "docker", "exec", "web", "/bin/busybox", "dd", "if=/dev/zero", "of=/more", "bs=4096", "count=1000", "conv=fsync")
	run(t, weirPath, "quota", "set", "docker:web", "60MB", "--files", "1k")
	run(t, weirPath, "quota", "clear", "docker:web")
	run(t, weirPath, "quota", "clear", dir)
	if after := show(); len(after) != 0 {
		t.Errorf("after clear the quotas are %v", after)
	}
}
