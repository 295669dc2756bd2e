package agree_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// statementRate is a limit that is only spoken of: nobody writes.
const statementRate = "4MB/s"

// run, set, show, why and their dry runs make the same statement before any I/O: what is
// expected to hold each kind of write, or that nothing holds it, and whether weir asks the
// pacer.
func TestStatementsAgree(t *testing.T) {
	for _, p := range append(slices.Clone(places), struct{ name, fs, options string }{"vfat", "vfat", ""}) {
		t.Run(p.name, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.NoSystemd)
			if p.name == "vfat" {
				lab.Need(t, lab.Once, lab.Guest, lab.Command("mkdosfs"))
			} else {
				lab.Need(t, lab.FS(p.fs))
			}
			if p.name != "ext4" {
				lab.Need(t, lab.Whole, lab.Guest)
			}
			dir := statementDir(t, p.fs, p.options)
			for _, hold := range []string{"auto", "kernel"} {
				run := statementOfRun(t, dir, hold)
				want := run.byPath(t)
				t.Logf("--hold %s: %v", hold, want)
				matches(t, "weir why", want, ask(t, dir, "--write", statementRate, "--hold", hold))
				for name, procs := range map[string][]string{"empty": {""}, "running": {"", "."}, "parent": {"", "below"}} {
					group := "agree-" + strings.ReplaceAll(p.fs+p.options, "=", "-") + "-" + hold + "-" + name
					statementsOfSet(t, e, dir, hold, group, procs[1:], want)
				}
			}
		})
	}
}

func statementDir(t *testing.T, fs, options string) string {
	t.Helper()
	if fs == "vfat" {
		raw := lab.RawDisk(t)
		if out, err := exec.Command("mkdosfs", raw.Node).CombinedOutput(); err != nil {
			t.Fatalf("mkdosfs: %v: %s", err, out)
		}
		raw.Dir, raw.FS = t.TempDir(), fs
		if out, err := exec.Command("mount", "-t", "vfat", raw.Node, raw.Dir).CombinedOutput(); err != nil {
			t.Fatalf("mount: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("umount", raw.Dir).Run() })
		return raw.Dir
	}
	disk := lab.Disk(t, lab.FS(fs))
	if options != "" {
		remount(t, disk, options)
	}
	return disk.Dir
}

// A statement is what is compared of what weir run and weir set print.
type statement struct {
	Devices []struct {
		Expected []struct {
			Path, Mechanism, Why string
			Read                 bool
		}
		Foreign *struct{ Mechanism, Why string } // writes to other groups' files
	}
	Steps    []step
	Messages []struct{ Text string }
}

// A step is one of a dry run.
type step struct {
	Pace *struct {
		WBPS    uint64
		Escapes bool // of what is written over files of other groups alone
	}
}

// state runs a verb, whose document is on the last line of what it prints.
func state(t *testing.T, verb string, args ...string) (s statement) {
	t.Helper()
	cmd := exec.Command("weir", append([]string{verb, "--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatalf("weir %s %v: %v\n%s%s", verb, args, err, out, stderr.Bytes())
	}
	return s
}

// lines are those that say what is expected.
func (s statement) lines() (lines []string) {
	for _, m := range s.Messages {
		if strings.HasPrefix(m.Text, "expected ") || strings.Contains(m.Text, "child groups") {
			lines = append(lines, m.Text)
		}
	}
	return lines
}

func (s statement) paces() bool {
	return slices.ContainsFunc(s.Steps, func(step step) bool {
		return step.Pace != nil && step.Pace.WBPS > 0 && !step.Pace.Escapes
	})
}

// byPath are the mechanisms of writes.
func (s statement) byPath(t *testing.T) map[string]string {
	t.Helper()
	by := map[string]string{}
	for _, d := range s.Devices {
		for _, c := range d.Expected {
			by[c.Path] = c.Mechanism
			if c.Mechanism == "" && c.Why == "" {
				t.Errorf("nothing holds %s writes, and no reason is named", c.Path)
			}
		}
	}
	if len(by) != 4 {
		t.Errorf("%v: want four paths", by)
	}
	return by
}

// others is by what writes to other groups' files are expected to hold: "nothing", or "-" where
// the kernel charges them as all others.
func (s statement) others(t *testing.T) string {
	t.Helper()
	by := "-"
	for _, d := range s.Devices {
		switch {
		case d.Foreign == nil:
		case d.Foreign.Mechanism != "":
			by = d.Foreign.Mechanism
		case d.Foreign.Why != "":
			by = "nothing"
		default:
			t.Error("nothing holds writes to other groups' files, and no reason is named")
		}
	}
	return by
}

// shown is what weir show says of a target.
func shown(t *testing.T, target string) statement {
	t.Helper()
	var doc struct{ Groups []statement }
	weir(t, &doc, "show", target, "--for", "0")
	if len(doc.Groups) != 1 {
		t.Fatalf("weir show %s shows %d groups", target, len(doc.Groups))
	}
	return doc.Groups[0]
}

func statementOfRun(t *testing.T, dir, hold string) statement {
	t.Helper()
	limits := []string{"--write", statementRate, "--on", dir, "--hold", hold}
	dry := state(t, "run", append(slices.Clone(limits), "--dry-run", "--", "true")...)
	real := state(t, "run", append(slices.Clone(limits), "--", "true")...)
	if !slices.Equal(dry.lines(), real.lines()) || len(dry.lines()) == 0 {
		t.Errorf("weir run --dry-run says %q, and weir run %q", dry.lines(), real.lines())
	}
	if paced := real.byPath(t)["buffered"] == "pacer"; dry.paces() != paced {
		t.Errorf("weir run paces: %t, and its dry run says %t", paced, dry.paces())
	}
	return real
}

// statementsOfSet compares what is said of a group: with processes of its own, in a group
// below it, or without any, who then come.
func statementsOfSet(t *testing.T, e environ.Environ, dir, hold, name string, procs []string, run map[string]string) {
	t.Helper()
	root, v1 := e.Cgroups.Unified, !e.Cgroups.IOInV2
	if v1 {
		root = e.Cgroups.Blkio
	} else if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(root, name)
	lab.Cgroup(t, group)
	want := run
	for _, below := range procs {
		if below != "." {
			lab.Cgroup(t, filepath.Join(group, below))
			if v1 { // whose rules reach nobody there
				want = map[string]string{"direct": "", "sync": "", "buffered": "", "mapped": ""}
			}
		}
		sleeper(t, filepath.Join(group, below))
	}
	target := "cgroup:/" + name
	limits := []string{target, "--write", statementRate, "--on", dir, "--hold", hold}
	dry := state(t, "set", append(slices.Clone(limits), "--dry-run")...)
	set := state(t, "set", limits...)
	if !slices.Equal(dry.lines(), set.lines()) || len(dry.lines()) == 0 {
		t.Errorf("%s: weir set --dry-run says %q, and weir set %q", name, dry.lines(), set.lines())
	}
	got := set.byPath(t)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: weir set says %v, want %v", name, got, want)
	}
	if flat := fmt.Sprint(want) != fmt.Sprint(run); flat && !strings.Contains(strings.Join(set.lines(), "\n"), "/"+name+"/below") {
		t.Errorf("%s: the group with its processes is not named: %q", name, set.lines())
	}
	if paced := got["buffered"] == "pacer"; dry.paces() != paced || shownPaced(t, target) != paced {
		t.Errorf("%s: weir set paces: %t; its dry run says %t, and weir show %t", name, paced, dry.paces(), shownPaced(t, target))
	}
	if show := shown(t, target); fmt.Sprint(show.byPath(t)) != fmt.Sprint(want) || show.others(t) != set.others(t) {
		t.Errorf("%s: weir show says %v, and of others' files %s; want %v, and %s as weir set", name, show.byPath(t), show.others(t), want, set.others(t))
	}
	said := ask(t, target, "--on", dir)
	if says, want := slices.ContainsFunc(said.Findings, func(f finding) bool { return f.Code == "escapes-paced" }), set.others(t) == "pacer"; says != want {
		t.Errorf("%s: weir set has the pacer hold writes to other groups' files: %t, and weir why says so: %t", name, want, says)
	}
	matches(t, name+": weir why", want, said)
	if len(procs) == 0 { // newcomers change nothing of it
		sleeper(t, group)
		matches(t, name+", with a newcomer: weir why", want, ask(t, target, "--on", dir))
	}
	paced := got["buffered"] == "pacer" || set.others(t) == "pacer"
	lifts := state(t, "clear", target, "--dry-run")
	releases := slices.ContainsFunc(lifts.Steps, func(step step) bool { return step.Pace != nil && step.Pace.WBPS == 0 })
	if releases != paced {
		t.Errorf("%s: the pacer holds it: %t; the dry run of weir clear releases it: %t", name, paced, releases)
	}
	state(t, "clear", target)
	if shownPaced(t, target) {
		t.Errorf("%s is paced after weir clear", name)
	}
}

func shownPaced(t *testing.T, target string) bool {
	t.Helper()
	var doc struct {
		Groups []struct {
			Paced uint64 `json:"paced_wbps"`
		}
	}
	weir(t, &doc, "show", target, "--for", "0")
	return len(doc.Groups) == 1 && doc.Groups[0].Paced > 0
}

// sleeper puts a process into a group.
func sleeper(t *testing.T, group string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs" && exec sleep 600`, group)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lab.Await(t, 10e9, "a process in "+group, func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", cmd.Process.Pid)) // the pacer may have brought it to a cell in the group
		return err == nil && strings.Contains(string(text)+"/", "/"+filepath.Base(group)+"/") || strings.Contains(string(text), "/"+filepath.Base(group)+"\n")
	})
}

// matches holds weir why's matrix against mechanisms.
func matches(t *testing.T, who string, want map[string]string, said report) {
	t.Helper()
	got := map[string]string{}
	for _, c := range said.Matrix {
		if !c.Read {
			got[c.Path] = c.Mechanism
			if (c.Held == "no") != (c.Mechanism == "") {
				t.Errorf("%s: %s is %q by %q", who, c, c.Held, c.Mechanism)
			}
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s says %v, want %v; because of %+v", who, got, want, said.Findings)
	}
}
