package full

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// A PaaS has disk I/O in its plans. Each container names its plan by a label, weird runs as a service,
// and nobody calls weir: containers are limited when they start and when they restart, direct writes of
// one and buffered writes of the other are held, and a plan that changes is in force on all containers
// within a second.
func (d containerTest) plans(t *testing.T) {
	lab.Need(t, lab.V2, lab.Docker, lab.Systemd)
	db := d
	db.disk = lab.Disk(t, lab.FS("ext4"))
	rates := map[string]int{"small": 5e6, "db": 10e6}
	dir := "/etc/weir/plans.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		text := fmt.Sprintf("plans:\n  small: {read: 20MB/s, write: %d}\n  db: {extends: small, write: %d}\nallow-labels: [small, db]\n", rates["small"], rates["db"])
		if err := os.WriteFile(filepath.Join(dir, "paas.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write()
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	startWeird(t)

	limited := func(c containerTest, name, plan string, within time.Duration) {
		t.Helper()
		began := time.Now()
		lab.Await(t, within, "the limit of "+name, func() bool {
			wbps, is := strings.CutPrefix(c.rule(t, name), "rbps=20000000 wbps=")
			if c.e.Cgroups.Blkio != "" {
				wbps, is = c.rule(t, name), true
			}
			wbps, _, _ = strings.Cut(wbps, " ")
			return is && wbps == strconv.Itoa(rates[plan])
		})
		t.Logf("%s has its limit after %v", name, time.Since(began))
	}
	paths := map[string]load.Path{"web": load.Direct, "sql": load.Buffered}
	d.ofPlan(t, "web", "small", paths["web"])
	db.ofPlan(t, "sql", "db", paths["sql"])
	limited(d, "web", "small", 2*time.Second)
	limited(db, "sql", "db", 2*time.Second)
	run(t, d.engine, "restart", "--time", "0", "web")
	limited(d, "web", "small", 2*time.Second)
	t.Run("held", func(t *testing.T) { // both at once
		for name, c := range map[string]containerTest{"web": d, "sql": db} {
			limit := float64(rates[map[string]string{"web": "small", "sql": "db"}[name]])
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				lab.Ratio(t, fmt.Sprintf("%s writes of %s", paths[name], name), limit, lab.Written, func() float64 {
					time.Sleep(time.Second) // what the container's start wrote
					return c.rateOf(t, name, paths[name], 4*time.Second)
				})
			})
		}
	})

	rates["small"], rates["db"] = 4e6, 8e6
	write()
	limited(d, "web", "small", time.Second)
	limited(db, "sql", "db", time.Second)
	out, err := exec.Command("weird", "status").CombinedOutput()
	if err != nil || strings.Count(string(out), "in-force") != 2 {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%s", out)
	// What still waits for the limit would keep a file that is removed for a minute.
	rates["small"], rates["db"] = 200e6, 200e6
	write()
	limited(db, "sql", "db", time.Second)
	d.remove(t, "web")
	db.remove(t, "sql")
}

// startWeird runs weird as its unit does. (systemd may not have the unit's programs where the lab has
// them.)
func startWeird(t *testing.T) {
	t.Helper()
	weird, err := exec.LookPath("weird")
	if err != nil {
		t.Fatal(err)
	}
	unit := "/run/systemd/system/weird.service"
	text := strings.Replace(contrib.WeirdService, "/usr/local/bin/weird", weird, 1)
	if !strings.Contains(text, weird) {
		t.Fatal("the unit does not start weird")
	}
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(unit); err != nil {
			t.Error(err)
		}
		run(t, "systemctl", "daemon-reload")
	})
	run(t, "systemctl", "daemon-reload")
	start(t, "weird")
}

// ofPlan starts a container that chooses a plan, and writes as fast as it can.
func (d containerTest) ofPlan(t *testing.T, name, plan string, path load.Path) {
	t.Helper()
	job := load.Job{Path: path, File: "/data/f", Block: 64 << 10, Size: 256 << 20, For: time.Hour}
	d.container(t, name, []string{"--label", "weir.plan=" + plan}, append([]string{"/weir", "__load"}, job.Args()...)...)
}

// rateOf is the rate at which a container writes: at its disk; where weir's pacer holds it, that of
// its program, because nobody holds the kernel's writeback then.
func (d containerTest) rateOf(t *testing.T, name string, path load.Path, window time.Duration) float64 {
	t.Helper()
	if d.e.Cgroups.Blkio == "" && path == load.Buffered {
		arrivals := lab.WatchWriteback(d.group(t, name), d.disk.Number)
		return arrivals.RateOver(t, window)
	}
	counter := func() int64 { _, n := lab.DeviceBytes(t, d.disk.Number); return n }
	if path == load.Buffered {
		counter = func() int64 { return writeBytes(t, run(t, d.engine, "inspect", "--format", "{{.State.Pid}}", name)) }
	}
	before, began := counter(), time.Now()
	time.Sleep(window)
	return float64(counter()-before) / time.Since(began).Seconds()
}

// writeBytes is what a process has made dirty or written itself; see proc_pid_io(5).
func writeBytes(t *testing.T, pid string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/io")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "write_bytes: "); is {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("/proc/%s/io: %s", pid, text)
	return 0
}
