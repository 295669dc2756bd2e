package full

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// A user whose service has io delegated limits containers of its own Podman.
func TestPodmanRootless(t *testing.T) {
	e := lab.Need(t, lab.Podman, lab.Systemd, lab.V2, lab.Whole, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	if err := os.Chmod(filepath.Dir(disk.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	const user, home, socket = 1000, "/home/weir", "/run/user/1000/podman/podman.sock"
	run(t, "sh", "-ec", "echo 'weir:x:1000:1000::/home/weir:/bin/sh' >>/etc/passwd; echo 'weir:x:1000:' >>/etc/group; mkdir -p "+home+" /run/user/1000/podman; chown -R 1000:1000 "+home+" /run/user/1000 "+disk.Dir)
	as := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_RUNTIME_DIR=/run/user/1000"}
		cmd.Dir = home
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		return cmd
	}
	run(t, "systemd-run", "--unit=weir-rootless", "--uid=1000", "--gid=1000", "--property=Delegate=yes", "--property=DelegateSubgroup=daemon",
		"--setenv=HOME="+home, "--setenv=XDG_RUNTIME_DIR=/run/user/1000", "--working-directory="+home,
		"podman", "--cgroup-manager=cgroupfs", "system", "service", "--time=0", "unix://"+socket)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(run(t, "journalctl", "--no-pager", "-u", "weir-rootless"))
		}
		run(t, "systemctl", "kill", "--signal=KILL", "weir-rootless") // its containers do not end by themselves
		lab.Await(t, 30*time.Second, "the end of the user's Podman", func() bool {
			return run(t, "systemctl", "show", "-P", "ActiveState", "weir-rootless") == "failed"
		})
		run(t, "systemctl", "reset-failed", "weir-rootless") // io is delegated to it as long as it is known
	})
	lab.Await(t, 30*time.Second, "the user's Podman", func() bool { _, err := os.Stat(socket); return err == nil })
	image := busybox.Tar(t)
	if err := os.Chmod(filepath.Dir(filepath.Dir(image)), 0o755); err != nil {
		t.Fatal(err)
	}
	must := func(cmd *exec.Cmd) string {
		t.Helper()
		out, err := cmd.CombinedOutput()
		t.Logf("%s: %s", strings.Join(cmd.Args, " "), out)
		if err != nil {
			t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, out)
		}
		return string(out)
	}
	podman := func(args ...string) string {
		t.Helper()
		return must(as("podman", append([]string{"--remote", "--url", "unix://" + socket}, args...)...))
	}
	podman("import", "--quiet", image, "busybox")
	podman("run", "--detach", "--name", "web", "--network", "none", "--volume", disk.Dir+":/data", "busybox", "/bin/sh", "-c", endless)
	pid := strings.TrimSpace(podman("inspect", "--format", "{{.State.Pid}}", "web"))
	group, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(e.Cgroups.Unified, strings.TrimSpace(strings.TrimPrefix(string(group), "0::")))
	rule := func() string { return ruleIn(t, filepath.Join(dir, "io.max"), disk.Number) }

	rate := lab.Scaled(e, 10e6)
	must(as("weir", "set", "podman:web", "--write", fmt.Sprint(rate), "--on", disk.Dir))
	if got, want := rule(), fmt.Sprintf("rbps=max wbps=%d riops=max wiops=max", rate); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	time.Sleep(2 * time.Second) // what the promise allows
	lab.Ratio(t, "after set", float64(rate), lab.Written, func() float64 {
		arrivals := lab.WatchWriteback(dir, disk.Number)
		return arrivals.RateOver(t, 8*time.Second)
	})
	if shown := must(as("weir", "show", "--for", "0", "podman:web")); !strings.Contains(shown, disk.Node) {
		t.Errorf("weir show:\n%s", shown)
	}
	if got, _ := as("weir", "why", "podman:web").Output(); !strings.HasPrefix(string(got), "podman:web → cgroup ") {
		t.Errorf("weir why: %q", got)
	}
	got, _ := as("weir", "prove", "podman:web", "--observe", "6s").Output()
	if longer := regexp.MustCompile(`the window is too short; measure longer: (\S+)`).FindSubmatch(got); longer != nil {
		got, _ = as("weir", "prove", "podman:web", "--observe", string(longer[1])).Output()
	}
	if !strings.Contains(string(got), "held") || strings.Contains(string(got), "not held") {
		t.Errorf("weir prove: %s", got)
	}
	if out, err := as("weir", "set", "podman:web", "--write", "1MB/s", "--on", disk.Dir, "--persist").CombinedOutput(); err == nil || !strings.Contains(string(out), "permission denied") {
		t.Errorf("with --persist: %v: %s", err, out)
	}
	if got, want := rule(), fmt.Sprintf("rbps=max wbps=%d riops=max wiops=max", rate); got != want {
		t.Errorf("after --persist was refused the rule is %q, want %q", got, want)
	}
	must(as("weir", "clear", "podman:web"))
	if got := rule(); got != "" {
		t.Errorf("after clear the rule is %q", got)
	}
	if out, err := as("weir", "set", "unit:weir-rootless", "--write", "1MB/s", "--on", disk.Dir).CombinedOutput(); err == nil {
		t.Errorf("a user limits a unit of the system: %s", out)
	}
}
