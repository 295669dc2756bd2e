package agree_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/second"
)

func TestMain(m *testing.M) {
	second.Main() // if this program is started as another front end, or as a helper of it
	os.Exit(m.Run())
}

// varies are the numbers of documents that differ from one moment to the next.
var varies = []string{"dirty", "used", "project"}

// number is a number in a sentence, with its unit: 999 kB or 1.00 MB, 119 s or 2 min.
var number = regexp.MustCompile(`[0-9]+(\.[0-9]+)?( (k|M|G|T)?B\b| s\b| min\b| h\b)?`)

// measured are the fields of a proof's row that say what was measured, and not what was asked.
var measured = []string{"left_out_seconds", "operations", "writer", "cgroup", "disk", "others", "ratio", "ratio_within", "verdict", "reason", "why",
	"warnings", "findings", "dirty_bytes", "drain_seconds", "p50_seconds", "p99_seconds", "max_seconds", "window_seconds"}

// TestASecondFrontEnd has another program, which knows nothing of the command line, set, show,
// explain, prove and clear limits, and set and clear a quota. Then weir does it. The documents are
// the same, but for what is measured.
func TestASecondFrontEnd(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	tree := filepath.Join(disk.Dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	root := e.Cgroups.Blkio
	if e.Cgroups.IOInV2 {
		root = e.Cgroups.Unified
		if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			t.Fatal(err)
		}
	}
	group := filepath.Join(root, "second")
	lab.Cgroup(t, group)
	sleeper(t, group)
	const its = "cgroup:/second"
	write := []limit.Asked{{On: disk.Dir, Limit: limit.Limit{WBPS: limit.PerSecond(3 << 20)}}}
	there := []limit.Asked{{On: disk.Dir}}
	cases := []struct {
		args []string
		r    second.Request
		exit int // -1: it is the verdict
	}{
		{[]string{"set", its, "--write", "3MiB/s", "--on", disk.Dir, "--hold", "kernel"}, second.Request{Do: "set", Of: its, Asked: write, Hold: limit.HoldKernel}, 0},
		{[]string{"show", its, "--for", "0"}, second.Request{Do: "show", Of: its}, 0},
		{[]string{"why", its, "--on", disk.Dir}, second.Request{Do: "why", Of: its, Asked: there}, -1},
		{[]string{"prove", its, "--on", disk.Dir, "--paths", "direct", "--for", "1s"}, second.Request{Do: "prove", Of: its, Asked: there, Paths: []load.Path{load.Direct}, Window: time.Second}, -1},
		{[]string{"clear", its}, second.Request{Do: "clear", Of: its}, 0},
		// With cgroup v1 the pacer holds this one: a helper of the program that is asked first.
		{[]string{"set", its, "--write", "3MiB/s", "--on", disk.Dir}, second.Request{Do: "set", Of: its, Asked: write}, 0},
		{[]string{"show", its, "--for", "0"}, second.Request{Do: "show", Of: its}, 0},
		{[]string{"clear", its}, second.Request{Do: "clear", Of: its}, 0},
		{[]string{"set", its, "--write", "3MiB/s", "--on", disk.Dir, "--persist"}, second.Request{Do: "set", Of: its, Asked: write, Persist: true}, fault.ExitWrongUse},
		{[]string{"restore"}, second.Request{Do: "restore"}, 0},
		{[]string{"quota", "set", tree, "1MiB"}, second.Request{Do: "quota set", Of: tree, Size: 1 << 20}, 0},
		{[]string{"quota", "show", tree}, second.Request{Do: "quota show", Of: tree}, 0},
		{[]string{"quota", "clear", tree}, second.Request{Do: "quota clear", Of: tree}, 0},
	}
	var answers []second.Answer
	for _, c := range cases {
		a, err := second.Ask(t.Context(), c.r)
		if err != nil {
			t.Fatalf("%+v: %v", c.r, err)
		}
		if c.exit >= 0 && a.Exit != c.exit || c.exit < 0 && a.Error != "" {
			t.Errorf("%+v: exit code %d, want %d: %s", c.r, a.Exit, c.exit, a.Error)
		}
		answers = append(answers, a)
	}
	for i, c := range cases {
		out, exit := printed(t, c.args...)
		if c.exit >= 0 && exit != c.exit {
			t.Errorf("weir %q: exit code %d, want %d", c.args, exit, c.exit)
		}
		if got, want := steady(t, out), steady(t, answers[i].Document); !reflect.DeepEqual(got, want) {
			t.Errorf("weir %q:\n%v\nand the second front end\n%v", c.args, got, want)
		}
	}
}

// printed is what a command line prints as its document, and its exit code.
func printed(t *testing.T, args ...string) (out []byte, exit int) {
	t.Helper()
	cmd := exec.Command("weir", append(args, "--json")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return out, cmd.ProcessState.ExitCode()
}

// steady reads a document without what differs from one moment to the next, and without what only
// the command line says. Of what was measured, it has the names.
func steady(t *testing.T, text []byte) map[string]any {
	t.Helper()
	if len(text) == 0 {
		return nil
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	delete(document, "messages")
	if rows, is := document["rows"].([]any); is { // a proof
		for _, gone := range []string{"asked", "verdict", "findings"} {
			delete(document, gone)
		}
		for _, row := range rows {
			fields := row.(map[string]any)
			for name := range fields {
				if slices.Contains(measured, name) {
					fields[name] = "measured"
				}
			}
			delete(fields, "reason") // of some verdicts only
			delete(fields, "why")
		}
	}
	return still(document).(map[string]any)
}

// still drops what varies, at any depth.
func still(value any) any {
	switch value := value.(type) {
	case map[string]any:
		// The kernel's thresholds follow free memory: they are in this finding's words and evidence.
		if text, is := value["text"].(string); is && value["code"] == "writer-runs-ahead" {
			value["text"] = number.ReplaceAllString(text, "N")
		}
		if value["file"] == "/proc/vmstat" {
			delete(value, "value")
		}
		for name, inner := range value {
			if slices.Contains(varies, name) {
				delete(value, name)
			} else {
				value[name] = still(inner)
			}
		}
	case []any:
		for i := range value {
			value[i] = still(value[i])
		}
	}
	return value
}
