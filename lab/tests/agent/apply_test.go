package agent

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// weir runs weir beside an engine, and returns what it printed, what it said, and its status.
func (g *engine) weir(args ...string) (stdout, stderr string, status int) {
	g.t.Helper()
	cmd := exec.Command("weir", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+g.socket, "CONTAINER_HOST=unix:///nowhere/s")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.t.Fatal(err)
	}
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

func (g *engine) mustWeir(args ...string) string {
	g.t.Helper()
	out, said, status := g.weir(args...)
	if status != 0 {
		g.t.Fatalf("weir %v ends with %d\n%s%s", args, status, out, said)
	}
	return out + said
}

// Without a daemon weir plan apply puts plans into force, and takes them away again: what they are
// for, what weir has set, and nothing else.
func TestPlansAreApplied(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.Once)
	disk := lab.RawDisk(t)
	g := newEngine(t, e)
	file := filepath.Join(t.TempDir(), "plans.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want map[*container]uint64) {
		t.Helper()
		for c, rate := range want {
			if got := g.wbps(c, disk); got != rate {
				t.Errorf("%s: %s has %d, want %d", when, c.name, got, rate)
			}
		}
	}
	web, db := g.start("web-0", nil), g.start("db", map[string]string{"weir.plan": "large"})
	changed, other := g.start("web-changed", nil), g.start("other", nil)
	g.overwrite(other, disk, 9_000_000)
	write(two(disk))

	said := g.mustWeir("plan", "diff", "--plans", file)
	expect("after diff", map[*container]uint64{web: 0, db: 0, changed: 0, other: 9_000_000})
	if !strings.Contains(said, "docker:web-0") || !strings.Contains(said, "docker:other") {
		t.Errorf("weir plan diff says:\n%s", said)
	}
	g.mustWeir("plan", "apply", "--plans", file)
	expect("after apply", map[*container]uint64{web: smallRate, db: largeRate, changed: smallRate, other: 9_000_000})
	if steps := g.mustWeir("plan", "apply", "--plans", file, "--dry-run"); strings.Contains(steps, "write ") {
		t.Errorf("a second apply would do:\n%s", steps)
	}
	shown := g.mustWeir("plan", "show", "--plans", file, "docker:db")
	if !strings.Contains(shown, "large") || !strings.Contains(shown, "7 MB/s") {
		t.Errorf("weir plan show says:\n%s", shown)
	}

	// Another rate; another assignment; a rate that somebody else has set since.
	g.overwrite(changed, disk, 8_000_000)
	write(strings.Replace(strings.Replace(two(disk), smallPlan, "write: 4MB/s", 1), "'web-*'", "'web-0'", 1))
	g.mustWeir("plan", "apply", "--plans", file)
	expect("after a change", map[*container]uint64{web: 4_000_000, db: largeRate, changed: 8_000_000, other: 9_000_000})
	write("plans: {}\n")
	g.mustWeir("plan", "apply", "--plans", file)
	expect("without plans", map[*container]uint64{web: 0, db: 0, changed: 8_000_000, other: 9_000_000})
	if left := records(t, g); len(left) > 0 {
		t.Errorf("on record still: %v", left)
	}

	// By hand, whatever the files assign.
	write(two(disk))
	g.mustWeir("set", "docker:other", "--plans", file, "--plan", "large")
	g.mustWeir("set", "cgroup:/docker/"+changed.id, "--plans", file, "--plan", "small")
	expect("after set --plan", map[*container]uint64{other: largeRate, changed: smallRate, web: 0})
	for _, c := range []*container{other, changed} {
		g.mustWeir("clear", "docker:"+c.name)
	}
}

// A command gets the rates of a plan, from its first I/O on.
func TestRunWithAPlan(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.OnceV1, lab.Rates, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := &engine{t: t, e: e, socket: "/nowhere"}
	file := filepath.Join(t.TempDir(), "plans.yaml")
	text := fmt.Sprintf("plans: {small: {on: [{path: %s, write: 3MB/s}]}}\n", disk.Dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const size = 12_000_000
	lab.Ratio(t, "direct writes of a command with a plan", smallRate, lab.Written, func() float64 {
		// The command says when it begins and ends, by proc_uptime(5): weir's own start is not under the limit.
		dd := fmt.Sprintf("cat /proc/uptime; dd if=/dev/zero of=%s bs=60000 count=%d iflag=fullblock conv=fsync; cat /proc/uptime",
			filepath.Join(disk.Dir, "f"), size/60000)
		said := g.mustWeir("run", "--plan", "small", "--plans", file, "--", "sh", "-c", dd)
		var began, idle, ended float64
		if _, err := fmt.Sscan(said, &began, &idle, &ended); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		if !strings.Contains(said, "limit 3 MB/s: held") {
			t.Errorf("weir run says:\n%s", said)
		}
		return size / (ended - began)
	})
	_, said, status := g.weir("run", "--plan", "small", "--plans", file, "--on", disk.Dir, "--", "true")
	if status != 2 || !strings.Contains(said, "--plan small: leave out --on "+disk.Dir) {
		t.Errorf("%d: %s", status, said)
	}
}
