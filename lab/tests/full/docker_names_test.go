package full

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A container is found by its name, its id and the beginning of that, and what is not one container is an error.
func (d containerTest) names(t *testing.T) {
	longOnV1(t, d.e)
	d.container(t, "named", nil, "/bin/sleep", "600")
	id := run(t, "docker", "inspect", "--format", "{{.Id}}", "named")
	for _, spec := range []string{"docker:named", "docker:" + id, "docker:" + id[:12]} {
		if out, _ := mustWeir(t, "show", "--for", "0", spec); !strings.Contains(out, "owner docker ("+id[:12]+")") {
			t.Errorf("weir show %s: %s", spec, out)
		}
	}
	d.listed(t)
	ids := map[byte]bool{id[0]: true}
	same := ""
	for i := 0; same == ""; i++ {
		name := fmt.Sprint("same-", i)
		t.Cleanup(func() { run(t, "docker", "rm", name) })
		other := run(t, "docker", "create", "--name", name, "--network", "none", "busybox", "/bin/sleep", "600")
		if ids[other[0]] {
			same = other[:1]
		}
		ids[other[0]] = true
	}
	for spec, want := range map[string]string{
		"docker:" + same:       "the ids of several containers begin like this",
		"docker:same-0":        "the container has no process (created)",
		"docker:nobody-has-it": "no such container",
	} {
		if _, stderr, status := weir(t, "set", spec, "--write", "1MB/s"); status != 1 || !strings.Contains(stderr, want) {
			t.Errorf("weir set %s ends with %d, %q; want 1, %q", spec, status, stderr, want)
		}
	}
	run(t, "docker", "stop", "--time", "0", "named")
	if _, stderr, status := weir(t, "show", "docker:named"); status != 1 || !strings.Contains(stderr, "the container has no process (exited)") {
		t.Errorf("of a stopped container: %d, %q", status, stderr)
	}
}

// listed: a container goes by its name where things are listed, and alone; a name that a
// unit has as well is no container's, and nothing is changed.
func (d containerTest) listed(t *testing.T) {
	mustWeir(t, "set", "named", "--quiet", "--write", "2MB/s", "--on", d.disk.Dir)
	if got, _ := mustWeir(t, "show", "--for", "0"); !strings.Contains(got, "docker:named  ") {
		t.Errorf("weir show:\n%s", got)
	}
	if got, _ := mustWeir(t, "__complete", "set", "docker:nam"); !strings.HasPrefix(got, "docker:named\n") {
		t.Errorf("completion of docker:nam: %q", got)
	}
	run(t, "systemd-run", "--quiet", "--unit=named", "sleep", "600")
	_, said, status := weir(t, "set", "named", "--write", "1MB/s", "--on", d.disk.Dir)
	run(t, "systemctl", "stop", "named")
	if want := "write one of unit:named.service, docker:named"; status != 1 || !strings.Contains(said, want) {
		t.Errorf("of a name that fits twice: %d, %q, want %q in it", status, said, want)
	}
	if got, want := d.rule(t, "named"), d.ruleOf(2e6); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
}

// half: a container that ends while its limit is set has it, or there is one error and
// nothing is left.
func (d containerTest) half(t *testing.T) {
	lab.Need(t, lab.Whole, lab.Long)
	const step = 250 * time.Millisecond
	for i := range 8 {
		d.container(t, "half", nil, "/bin/sleep", "600")
		id := run(t, "docker", "inspect", "--format", "{{.Id}}", "half")
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			time.Sleep(time.Duration(i) * step) // weir set takes 1.7 s here
			_ = exec.Command("docker", "kill", "half").Run()
		}()
		_, said, status := weir(t, "set", "docker:half", "--write", "1MB/s", "--on", d.disk.Dir, "--persist")
		<-killed
		t.Logf("%d: %s", status, said)
		var left []string
		for _, pattern := range []string{"/etc/systemd/system/docker-" + id + ".scope.d/*", "/var/lib/weir/limits/*" + id + "*", "/run/weir/set.*"} {
			files, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, slices.DeleteFunc(files, func(file string) bool {
				text, _ := os.ReadFile(file)                    // it may have gone
				return !strings.Contains(file+string(text), id) // other tests run beside this one
			})...)
		}
		ended := strings.Contains(said, "it has ended, so") || strings.Contains(said, "has just ended") || strings.Contains(said, "has no process")
		if status != 0 && (len(left) > 0 || strings.Count(said, "\n") > 0 || !ended) {
			t.Errorf("after %v it ends with %d, left %q, and says %q", time.Duration(i)*step, status, left, said)
		}
		if status == 0 && len(left) != 1 {
			t.Errorf("it ends with 0, and %q is there", left)
		}
		if status == 0 {
			mustWeir(t, "clear", "docker:half", "--quiet")
		}
		d.remove(t, "half")
	}
}

// Under Docker's cgroupfs driver weir writes the group's files itself.
func (d containerTest) cgroupfs(t *testing.T) {
	reconfigure(t, "cgroupdriver=systemd", "cgroupdriver=cgroupfs")
	d.container(t, "files", nil, "/bin/sleep", "600")
	group := d.group(t, "files")
	if !strings.Contains(group, "/docker/") {
		t.Fatalf("the group is %s", group)
	}
	mustWeir(t, "set", "docker:files", "--quiet", "--write", "3MB/s", "--on", d.disk.Dir)
	if got, want := d.rule(t, "files"), d.ruleOf(3e6); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	// What is kept for it goes as well where it is named by its group.
	record := "/var/lib/weir/limits/docker%3A" + run(t, "docker", "inspect", "--format", "{{.Id}}", "files") + ".json"
	if _, said := mustWeir(t, "set", "docker:files", "--write", "3MB/s", "--on", d.disk.Dir, "--persist"); !strings.Contains(said, record+" keeps the limit") {
		t.Errorf("weir set --persist said nothing of %s:\n%s", record, said)
	}
	spec := "cgroup:" + strings.TrimPrefix(group, cmp.Or(d.e.Cgroups.Blkio, d.e.Cgroups.Unified))
	if _, said := mustWeir(t, "clear", spec); !strings.Contains(said, "removed "+record) {
		t.Errorf("weir clear %s said nothing of %s:\n%s", spec, record, said)
	}
	if got := d.rule(t, "files"); got != "" {
		t.Errorf("after clear the rule is %q", got)
	}
	if _, said := mustWeir(t, "restore"); !strings.Contains(said, "no limit is saved") {
		t.Errorf("after clear weir restore says:\n%s", said)
	}
}

// Without Docker weir says so.
func (d containerTest) down(t *testing.T) {
	run(t, "systemctl", "stop", "docker.socket", "docker")
	if _, stderr, status := weir(t, "show", "docker:web"); status != 3 || !strings.Contains(stderr, "Docker") {
		t.Errorf("%d, %q", status, stderr)
	}
}

const dockerConfig = "/etc/docker/daemon.json"

// configured has Docker's configuration be at the test's end what it is now. Nobody reads it again before.
func configured(t *testing.T) {
	t.Helper()
	config, err := os.ReadFile(dockerConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(dockerConfig, config, 0o644); err != nil {
			t.Error(err)
		}
	})
}

// reconfigure changes Docker's configuration and starts it again.
func reconfigure(t *testing.T, old, changed string) {
	t.Helper()
	config, err := os.ReadFile(dockerConfig)
	if err == nil && !bytes.Contains(config, []byte(old)) {
		t.Fatalf("%s has no %q:\n%s", dockerConfig, old, config)
	}
	if err == nil {
		err = os.WriteFile(dockerConfig, bytes.Replace(config, []byte(old), []byte(changed), 1), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	restartDocker(t)
}

// restartDocker also does it the fourth time in a minute, which its unit does not let pass.
func restartDocker(t *testing.T) {
	t.Helper()
	if err := exec.Command("systemctl", "restart", "docker").Run(); err != nil {
		run(t, "systemctl", "reset-failed", "docker.service") // of one that systemd has not loaded there is no failed state
		run(t, "systemctl", "restart", "docker")
	}
}
