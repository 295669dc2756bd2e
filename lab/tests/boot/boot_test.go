package boot_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// weirPath is where a weir is found by what systemd starts.
const weirPath = "/usr/local/bin/weir"

// Saved limits are in force again after a boot: a service's, a container's, and a volume's.
// The container finds the volume mounted.
func TestBoot(t *testing.T) {
	e := lab.Need(t, lab.Guest, lab.Root, lab.Systemd, lab.Lane("uml"), lab.Docker, lab.Loop)
	if e.Cgroups.Blkio != "" {
		lab.Need(t, lab.Long)
	}
	disk := rootDisk(t)
	if !lab.Rebooted() {
		prepare(t, e)
		for what, group := range groups(t, e) {
			if got := rule(t, e, group, disk); got != limits[what] {
				t.Errorf("before the boot the rule of %s is %q", what, got)
			}
		}
		lab.Reboot(t)
	}
	// The guest's own target has nothing in it but the lab.
	run(t, "systemctl", "start", "multi-user.target")
	lab.Await(t, time.Minute, "the limits", func() bool {
		for what, group := range groups(t, e) {
			if rule(t, e, group, disk) != limits[what] {
				return false
			}
		}
		return true
	})
	var list struct{ Volumes []struct{ Up bool } }
	if err := json.Unmarshal([]byte(run(t, weirPath, "volume", "list", "--json")), &list); err != nil || len(list.Volumes) != 1 || !list.Volumes[0].Up {
		t.Errorf("weir volume list: %+v, %v", list, err)
	}
	if got := run(t, "docker", "exec", "web", "cat", "/data/file"); got != "kept" {
		t.Errorf("the container has %q in its volume", got)
	}
	if got, want := deviceOf(t, "/var/lib/weir/volumes/data"), disk; got == want {
		t.Error("the volume's place is on the root disk")
	}
	volumeIsHeld(t)
	quotasHold(t)
}

// limits are what the rules come to, in bytes a second.
var limits = map[string]string{"the service": "3000000", "the container": "4000000"}

// prepare keeps limits of a service and a container, and makes a volume.
func prepare(t *testing.T, e environ.Environ) {
	t.Helper()
	copyPrograms(t)
	const file = "/etc/systemd/system/weir-boot.service"
	if err := os.WriteFile(file, []byte("[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl", "daemon-reload")
	run(t, "systemctl", "enable", "--now", "weir-boot.service")
	run(t, weirPath, "set", "unit:weir-boot", "--write", limits["the service"], "--on", "/", "--persist")
	run(t, weirPath, "volume", "create", "data", "--size", "100MiB", "--write", fmt.Sprint(volumeRate))
	run(t, weirPath, "volume", "up", "--at-boot")
	if err := os.WriteFile("/var/lib/weir/volumes/data/file", []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	mountAtBoot(t, e)
	const config = "/etc/docker/daemon.json"
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, bytes.Replace(text, []byte("{"), fmt.Appendf(nil, "{\n\"data-root\": %q,", quotaDir("xfs")+"/docker"), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	run(t, "systemctl", "enable", "--now", "docker.service")
	tree := t.TempDir()
	if err := os.Mkdir(filepath.Join(tree, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "cp", "/bin/busybox", filepath.Join(tree, "bin/busybox"))
	for _, applet := range []string{"sleep", "cat"} {
		if err := os.Symlink("busybox", filepath.Join(tree, "bin", applet)); err != nil {
			t.Fatal(err)
		}
	}
	image := filepath.Join(t.TempDir(), "image.tar")
	run(t, "tar", "-C", tree, "-cf", image, ".")
	run(t, "docker", "import", image, "busybox")
	run(t, "docker", "run", "--detach", "--name", "web", "--network", "none", "--restart", "always", "--volume", "/var/lib/weir/volumes/data:/data", "busybox", "/bin/sleep", "1000000")
	run(t, weirPath, "set", "docker:web", "--write", limits["the container"], "--on", "/", "--persist")
	run(t, weirPath, "restore", "--at-boot")
	run(t, weirPath, "quota", "set", "docker:web", fmt.Sprint(quotaSize))
	if err := os.Mkdir(quotaDir("ext4")+"/data", 0o777); err != nil {
		t.Fatal(err)
	}
	run(t, weirPath, "quota", "set", quotaDir("ext4")+"/data", fmt.Sprint(quotaSize))
}

func copyPrograms(t *testing.T) {
	t.Helper()
	for _, program := range []string{"weir", "weird"} {
		from, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		run(t, "cp", from, filepath.Join(filepath.Dir(weirPath), program))
	}
}

// groups are the directories of those that are limited.
func groups(t *testing.T, e environ.Environ) map[string]string {
	t.Helper()
	return map[string]string{
		"the service":   groupOf(t, e, run(t, "systemctl", "show", "-P", "MainPID", "weir-boot.service")),
		"the container": groupOf(t, e, run(t, "docker", "inspect", "--format", "{{.State.Pid}}", "web")),
	}
}

// groupOf is the directory of the group that limits a process.
func groupOf(t *testing.T, e environ.Environ, pid string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if e.Cgroups.Blkio != "" && fields[1] == "blkio" {
			return filepath.Join(e.Cgroups.Blkio, fields[2])
		}
		if e.Cgroups.Blkio == "" && fields[1] == "" {
			return filepath.Join(e.Cgroups.Unified, fields[2])
		}
	}
	t.Fatalf("groups of process %s: %s", pid, text)
	return ""
}

// rule is what a group may write to a disk, in bytes a second.
func rule(t *testing.T, e environ.Environ, group string, disk blkdev.Number) string {
	t.Helper()
	file := "io.max"
	if e.Cgroups.Blkio != "" {
		file = "blkio.throttle.write_bps_device"
	}
	text, err := os.ReadFile(filepath.Join(group, file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if number != disk.String() {
			continue
		}
		for field := range strings.FieldsSeq(rest) {
			if value, is := strings.CutPrefix(field, "wbps="); is || !strings.Contains(field, "=") {
				if !is {
					value = field
				}
				return value
			}
		}
	}
	return ""
}

// rootDisk is the disk that the system is on.
func rootDisk(t *testing.T) blkdev.Number { return deviceOf(t, "/") }

func deviceOf(t *testing.T, path string) blkdev.Number {
	t.Helper()
	chain, err := blkdev.New("/").Resolve(context.Background(), path)
	if err != nil || len(chain.Devices) != 1 {
		t.Fatalf("the disk of %s: %v, %v", path, chain.Devices, err)
	}
	return chain.Devices[0].Number
}

// volumeRate is the volume's limit.
const volumeRate = 2_000_000

// volumeIsHeld writes to the volume through the page cache: on v1 by who has no limit of
// his own, and is held all the same; on v2 the volume has no target.
func volumeIsHeld(t *testing.T) {
	t.Helper()
	e := lab.Here(t)
	if e.Cgroups.Blkio == "" {
		return
	}
	const window = 6 * time.Second
	dev := deviceOf(t, "/var/lib/weir/volumes/data")
	writer := exec.Command("dd", "if=/dev/zero", "of=/var/lib/weir/volumes/data/more", "bs=64k", "count=1000")
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = writer.Process.Kill()
		_ = writer.Wait()
	}()
	time.Sleep(2 * time.Second)
	lab.Ratio(t, "the volume after a boot", volumeRate, lab.Written, func() float64 {
		arrivals := lab.WatchWrites(lab.Done(t, dev))
		return arrivals.RateOver(t, window)
	})
}

// run gives a command's standard output, and ends the test when it fails.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	t.Logf("%s %s", name, strings.Join(args, " "))
	return strings.TrimSpace(stdout.String())
}
