package full

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// With --persist a limit is in force again when the container is started again, until
// weir clear; also of one that is stopped then. What was kept for a container that is
// removed goes with the next one's.
func (d containerTest) persist(t *testing.T) {
	rate := lab.Scaled(d.e, 10e6)
	if d.e.Cgroups.Blkio != "" {
		d.restore(t, rate)
		return
	}
	lab.Need(t, lab.Long)
	// It writes from its second start on, and leaves little in memory: a container is not
	// killed before the disk has what it waits for.
	d.container(t, "web", nil, "/bin/sh", "-c", "[ -e /data/go ] || exec /bin/sleep 600; "+strings.ReplaceAll(endless, "count=16000 conv=notrunc", "count=256 conv=notrunc,fsync"))
	dropIn := func(name string) string {
		return "/etc/systemd/system/docker-" + run(t, d.engine, "inspect", "--format", "{{.Id}}", name) + ".scope.d/40-weir.conf"
	}
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	kept := dropIn("web")
	_, said := mustWeir(t, "set", d.engine+":web", "--write", fmt.Sprint(rate), "--on", d.disk.Dir, "--persist")
	if !strings.Contains(said, kept+" has systemd set the limit at each start") {
		t.Errorf("it said nothing of what keeps it:\n%s", said)
	}
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	if text, err := os.ReadFile(kept); err != nil || strings.Contains(string(text), "/dev/block/") { // the disk is mounted
		t.Errorf("it names a disk by a number, which may be another one's after a boot: %v\n%s", err, text)
	}
	// Until the next start another limit can be set, and stays over a reload.
	mustWeir(t, "set", d.engine+":web", "--quiet", "--write", "1MB/s", "--on", d.disk.Dir)
	run(t, "systemctl", "daemon-reload")
	if got, want := d.rule(t, "web"), d.ruleOf(1e6); got != want {
		t.Errorf("after a reload the rule is %q, want %q", got, want)
	}
	if err := os.WriteFile(filepath.Join(d.disk.Dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, d.engine, "restart", "--time", "0", "web")
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("after a restart the rule is %q, want %q", got, want)
	}
	time.Sleep(2 * time.Second) // what the promise allows
	lab.Ratio(t, "after a restart", float64(rate), lab.Written, func() float64 { return d.written(t, 4*time.Second) })
	mustWeir(t, "clear", d.engine+":web")
	run(t, d.engine, "restart", "--time", "0", "web")
	if got := d.rule(t, "web"); got != "" || there(kept) {
		t.Errorf("after clear and a restart the rule is %q", got)
	}

	mustWeir(t, "set", d.engine+":web", "--quiet", "--write", fmt.Sprint(rate), "--on", d.disk.Dir, "--persist")
	run(t, d.engine, "stop", "--time", "0", "web")
	mustWeir(t, "clear", d.engine+":web")
	if there(kept) {
		t.Errorf("after clear of a stopped container %s is there", kept)
	}
	run(t, d.engine, "start", "web")
	if got := d.rule(t, "web"); got != "" {
		t.Errorf("after clear and a start the rule is %q", got)
	}

	mustWeir(t, "set", d.engine+":web", "--quiet", "--write", fmt.Sprint(rate), "--on", d.disk.Dir, "--persist")
	d.remove(t, "web")
	d.container(t, "next", nil, "/bin/sleep", "600")
	next := dropIn("next")
	mustWeir(t, "set", d.engine+":next", "--quiet", "--write", fmt.Sprint(rate), "--on", d.disk.Dir, "--persist")
	if there(kept) || !there(next) {
		t.Errorf("that of a removed container is there: %t; that of the next: %t", there(kept), there(next))
	}
	mustWeir(t, "clear", d.engine+":next")
}

// On v1 systemd keeps no limit of a container, and weir does: weir restore sets it when the
// container has been started again, and where systemd runs that, when Docker has.
func (d containerTest) restore(t *testing.T, rate int) {
	d.container(t, "web", []string{"--restart", "always"}, writing(d.e)...)
	_, said := mustWeir(t, "set", d.engine+":web", "--write", fmt.Sprint(rate), "--on", d.disk.Dir, "--hold", "auto", "--persist")
	record := "/var/lib/weir/limits/" + d.engine + "%3A" + run(t, d.engine, "inspect", "--format", "{{.Id}}", "web") + ".json"
	if !strings.Contains(said, record+" keeps the limit") {
		t.Errorf("it said nothing of what keeps it:\n%s", said)
	}
	run(t, d.engine, "restart", "--time", "0", "web")
	if got := d.rule(t, "web"); got != "" {
		t.Errorf("%s itself sets %q after a restart", d.title, got)
	}
	mustWeir(t, "restore", d.engine+":web")
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("after weir restore the rule is %q, want %q", got, want)
	}
	shown, _ := mustWeir(t, "show", "--for", "0", d.engine+":web")
	for _, want := range []string{"buffered writes paced at ", "weir keeps write "} {
		if !strings.Contains(shown, want) {
			t.Errorf("weir show has no %q:\n%s", want, shown)
		}
	}
	time.Sleep(2 * time.Second) // what the promise allows
	lab.Ratio(t, "after weir restore", float64(rate), lab.Written, func() float64 { return d.written(t, 4*time.Second) })

	if d.engine == "docker" {
		mustWeir(t, "restore", "--at-boot")
		t.Cleanup(func() { mustWeir(t, "restore", "--at-boot=false") })
		restartDocker(t)
		lab.Await(t, 60*time.Second, "the rule after a restart of Docker", func() bool {
			return run(t, d.engine, "inspect", "--format", "{{.State.Running}}", "web") == "true" && d.rule(t, "web") == d.ruleOf(rate)
		})
	}
	run(t, d.engine, "stop", "--time", "0", "web")
	if _, said := mustWeir(t, "restore"); !strings.Contains(said, "is not running") {
		t.Errorf("of a stopped one weir restore says:\n%s", said)
	}
	id := run(t, d.engine, "inspect", "--format", "{{.Id}}", "web")
	d.remove(t, "web")
	if _, said := mustWeir(t, "restore"); !strings.Contains(said, "weir keeps the saved limit until") {
		t.Errorf("of a removed one weir restore says:\n%s", said)
	}
	mustWeir(t, "clear", d.engine+":"+id)
	if _, err := os.Stat(record); err == nil {
		t.Errorf("%s is there still", record)
	}
}
