package weir_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/note"
)

// The version is that which the Makefile links into the commands.
func TestVersion(t *testing.T) {
	cmd := exec.Command("make", "-s", "--no-print-directory", "--eval=print-version: ; @echo $(VERSION) '$(LDFLAGS)'", "print-version")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	version, flags, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || version != weir.Version || !strings.Contains(flags, "-X main.version="+weir.Version) {
		t.Errorf("weir --version prints %q (%q), and Version is %q: %v", version, flags, weir.Version, err)
	}
}

// Each error has one class, by which it can be told apart, whatever it wraps.
func TestErrors(t *testing.T) {
	ctx := context.Background()
	h, done := open("v2", still)
	defer done()
	set := func(target string, r weir.SetRequest) error {
		r.DryRun = true
		_, err := h.Set(ctx, target, r)
		return err
	}
	limits := func(on string, r weir.Rates) []weir.Limit { return []weir.Limit{{On: on, Rates: r}} }
	write := limits("/data", weir.Rates{WBPS: 1e6})
	prove := func(target string, r weir.ProveRequest) error {
		_, err := h.Prove(ctx, target, r)
		return err
	}
	why := func(subject string, r weir.WhyRequest) error {
		_, err := h.Why(ctx, subject, r)
		return err
	}
	show := func(target string, window time.Duration) error {
		_, err := h.Show(ctx, target, window)
		return err
	}
	_, badVersion := weir.Open(weir.Options{CgroupVersion: 3})
	_, all := h.ShowAll(ctx, -1)
	_, cleared := h.Clear(ctx, "cgroup:/none", weir.ClearRequest{DryRun: true})
	_, copied := h.Set(ctx, "cgroup:/batch", weir.SetRequest{Limits: write})
	k := standIn(h)
	k.Refuse = func(string, string) error { return fs.ErrPermission }
	_, denied := h.Set(ctx, "cgroup:/batch", weir.SetRequest{Limits: write})
	classes := []error{weir.ErrNotFound, weir.ErrDenied, weir.ErrNotPossible, weir.ErrWrongUse}
	for name, c := range map[string]struct {
		err, class error
		text       string // part of it
	}{
		"no such target":       {set("cgroup:/none", weir.SetRequest{Limits: write}), weir.ErrNotFound, "/none"},
		"no such target again": {cleared, weir.ErrNotFound, "/none"},
		"nor to show":          {show("cgroup:/none", 0), weir.ErrNotFound, "/none"},
		"nor to measure":       {prove("cgroup:/none", weir.ProveRequest{Observe: time.Second}), weir.ErrNotFound, "/none"},
		"no such place":        {why("/none", weir.WhyRequest{}), weir.ErrNotFound, "/none"},
		"no such disk":         {set("cgroup:/batch", weir.SetRequest{Limits: limits("/none", weir.Rates{WBPS: 1})}), weir.ErrNotFound, "/none"},
		"no limits":            {set("cgroup:/batch", weir.SetRequest{}), weir.ErrWrongUse, "no limit is named"},
		"no rates":             {set("cgroup:/batch", weir.SetRequest{Limits: limits("", weir.Rates{})}), weir.ErrWrongUse, "every disk of the target: no rate is named"},
		"too many bytes":       {set("cgroup:/batch", weir.SetRequest{Limits: limits("", weir.Rates{RBPS: 1 << 63})}), weir.ErrWrongUse, "rbps 9223372036854775808: the most is 9223372036854775807"},
		"too many operations":  {set("cgroup:/batch", weir.SetRequest{Limits: limits("", weir.Rates{WIOPS: 1<<32 - 1})}), weir.ErrWrongUse, "wiops 4294967295: the most is 4294967294"},
		"too much to suppose":  {why("", weir.WhyRequest{Limits: limits("", weir.Rates{WIOPS: 1<<32 - 1})}), weir.ErrWrongUse, "wiops"},
		"no such hold":         {set("cgroup:/batch", weir.SetRequest{Limits: write, Hold: "none"}), weir.ErrWrongUse, `hold "none"`},
		"nor to suppose":       {why("", weir.WhyRequest{Hold: "none"}), weir.ErrWrongUse, `hold "none"`},
		"nobody keeps it":      {set("cgroup:/batch", weir.SetRequest{Limits: write, Persist: true}), weir.ErrWrongUse, "; do not set Persist"},
		"no bytes to pace":     {set("cgroup:/batch", weir.SetRequest{Limits: limits("/data", weir.Rates{RIOPS: 9}), Hold: weir.HoldPacer}), weir.ErrWrongUse, "pacer"},
		"a negative window":    {show("cgroup:/batch", -1), weir.ErrWrongUse, "negative"},
		"for all":              {all, weir.ErrWrongUse, "negative"},
		"a short window":       {prove("cgroup:/batch", weir.ProveRequest{Window: 1}), weir.ErrWrongUse, "window 1ns: 1s to 10m0s"},
		"a long look":          {prove("cgroup:/batch", weir.ProveRequest{Observe: time.Hour}), weir.ErrWrongUse, "observe 1h0m0s"},
		"no such path":         {prove("cgroup:/batch", weir.ProveRequest{Paths: []string{"direct", "x"}}), weir.ErrWrongUse, `path "x"`},
		"a load on a copy":     {prove("cgroup:/batch", weir.ProveRequest{}), weir.ErrWrongUse, "is a copy of one"},
		"no limit":             {prove("cgroup:/alone", weir.ProveRequest{Observe: time.Second}), weir.ErrNotPossible, "no disk I/O limit; Set a limit first"},
		"no such version":      {badVersion, weir.ErrWrongUse, "version 3"},
		"no right":             {denied, weir.ErrDenied, "permission denied"},
		"a copy":               {copied, weir.ErrNotPossible, "a copy, not the kernel's cgroup file system; set DryRun"},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, class := range classes {
			if errors.Is(c.err, class) != (class == c.class) {
				t.Errorf("%s: %v; is it %q: %v", name, c.err, class, class != c.class)
			}
		}
		if !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: %q does not say %q", name, c.err, c.text)
		}
	}
}

// What is refused has told what was found until then.
func TestNotesOfAnError(t *testing.T) {
	h, done := open("v2", func(root string) error {
		return os.WriteFile(filepath.Join(root, "proc/4800/mountinfo"), []byte("21 1 0:50 / / rw,relatime - nfs4 server:/x rw\n26 21 254:16 / /data rw,relatime - xfs /dev/vdb rw\n"), 0o666)
	})
	defer done()
	full := errors.New("no space")
	standIn(h).Refuse = func(string, string) error { return full }
	change, err := h.Set(context.Background(), "cgroup:/alone", weir.SetRequest{Limits: []weir.Limit{{Rates: weir.Rates{WBPS: 1e6}}}})
	var refused *weir.Error
	if !errors.As(err, &refused) || !errors.Is(err, full) || len(refused.Notes) == 0 || len(change.Notes) != len(refused.Notes) {
		t.Fatalf("%v with %+v", err, refused)
	}
	if n := refused.Notes[0]; n.Code != "no-limit" || n.Level != weir.Notice || !strings.Contains(n.String(), "no limit on /") {
		t.Errorf("%+v", n)
	}
	if n := (weir.Note{Text: "x", Remedy: weir.Remedy{Do: "set-again", Target: "pid:1"}}); n.String() != "x; repeat Set for pid:1 then" {
		t.Errorf("%q", n)
	}
}

// What a decision means for a target is noted with a code, in a dry run and after the deed.
func TestNotesOfADecision(t *testing.T) {
	for machine, want := range map[string]weir.Note{
		"v1": {Code: "child-groups", Level: weir.Warning},
		"v2": {Code: "foreign-not-held", Level: weir.Info},
	} {
		h, done := open(machine)
		standIn(h)
		for _, dry := range []bool{true, false} {
			c, err := h.Set(context.Background(), "cgroup:/batch", weir.SetRequest{
				Limits: []weir.Limit{{On: "/data", Rates: weir.Rates{WBPS: 1e6}}}, Hold: weir.HoldKernel, DryRun: dry})
			if err != nil || !slices.ContainsFunc(c.Notes, func(n weir.Note) bool { return n.Code == want.Code && n.Level == want.Level && n.Text != "" }) {
				t.Errorf("%s, dry run %v: %+v, %v", machine, dry, c.Notes, err)
			}
			if dry != (len(c.Steps) > 0) || dry != (c.Target == "") || len(c.Devices) != 1 {
				t.Errorf("%s, dry run %v: %+v", machine, dry, c)
			}
		}
		done()
	}
}

// A proof asks as weir prove does.
func TestProveRequest(t *testing.T) {
	for name, c := range map[string]struct {
		own  weir.ProveRequest
		want prove.Request
	}{
		"nothing": {weir.ProveRequest{}, prove.Request{Paths: prove.Paths, Window: 3 * time.Second, Short: true}},
		"all of it": {weir.ProveRequest{Observe: 2 * time.Second, Dirs: []string{"/data"}, Window: time.Second, All: true},
			prove.Request{Observe: 2 * time.Second, Dirs: []string{"/data"}, Window: time.Second, All: true, Paths: prove.Paths}},
		"paths": {weir.ProveRequest{Paths: []string{"async", "direct", "async"}},
			prove.Request{Paths: []load.Path{load.Async, load.Direct}, Window: 3 * time.Second, Short: true, All: true}},
	} {
		if got, err := weir.RequestOf(c.own); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// A question supposes the usual hold, if it names none.
func TestWhyRequest(t *testing.T) {
	for named, want := range map[weir.Hold]limit.Hold{"": limit.HoldAuto, weir.HoldKernel: limit.HoldKernel, weir.HoldPacer: limit.HoldPacer} {
		if q, err := weir.QuestionOf(weir.WhyRequest{Hold: named}, "vdb"); err != nil || q.Hold != want || q.Subject != "vdb" || len(q.Asked) != 0 {
			t.Errorf("%q: %+v, %v", named, q, err)
		}
	}
}

// Without helpers nothing of this machine changes. (If something did, there is no such group.)
func TestWithoutHelpers(t *testing.T) {
	ctx := context.Background()
	h, err := weir.Open(weir.Options{Root: "/."})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	const none = "cgroup:/weir-test/none"
	_, set := h.Set(ctx, none, weir.SetRequest{Limits: []weir.Limit{{Rates: weir.Rates{WBPS: 1e6}}}})
	_, cleared := h.Clear(ctx, none, weir.ClearRequest{})
	_, proved := h.Prove(ctx, none, weir.ProveRequest{})
	for _, err := range []error{set, cleared, proved} {
		if !errors.Is(err, weir.ErrWrongUse) || !strings.Contains(err.Error(), "call RunHelper first in main") {
			t.Error(err)
		}
	}
	if _, err := h.Prove(ctx, none, weir.ProveRequest{Observe: time.Second}); err == nil || strings.Contains(err.Error(), "RunHelper") {
		t.Errorf("to observe needs no helper: %v", err)
	}
}

// A process that is started as a helper works as one, and others go on.
func TestRunHelper(t *testing.T) {
	for _, args := range [][]string{nil, {"paas"}, {"paas", "serve"}, {"paas", "serve", "__load"}} {
		if is, _ := weir.RunHelperOf(args...); is {
			t.Errorf("%q is a helper", args)
		}
	}
	if is, status := weir.RunHelperOf("weir", "__pacer", "x"); !is || status != 2 {
		t.Errorf("a helper with an argument too many: %v, %d", is, status)
	}
}

// The words of this package are those of the core.
func TestWords(t *testing.T) {
	for own, theirs := range map[string]string{
		string(weir.Held): string(prove.Held), string(weir.HeldAtDevice): string(prove.HeldAtDevice), string(weir.NotHeld): string(prove.NotHeld), string(weir.CannotTell): string(prove.CannotTell),
		string(weir.Info): string(note.Info), string(weir.Notice): string(note.Notice), string(weir.Warning): string(note.Warning),
		string(weir.HoldAuto): string(limit.HoldAuto), string(weir.HoldKernel): string(limit.HoldKernel), string(weir.HoldPacer): string(limit.HoldPacer),
	} {
		if own != theirs {
			t.Errorf("%q, and the core says %q", own, theirs)
		}
	}
}

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		cells    string
		held, ok bool
	}{{"yes device unlimited", true, true}, {"yes no unknown", false, true}, {"yes unknown", false, false}, {"", true, true}} {
		r := weir.Report{Group: &weir.Group{}}
		for _, word := range strings.Fields(c.cells) {
			r.Matrix = append(r.Matrix, weir.Cell{Expected: word})
		}
		if held, ok := r.Held(); held != c.held || ok != c.ok {
			t.Errorf("%q: %v, %v", c.cells, held, ok)
		}
	}
}

// Each thing to do that the library can be told by the core has words in its own terms.
func TestRemediesHaveWords(t *testing.T) {
	core := []string{"linux/cgroupfs", "look/explain", "keep", "limiting", "place", "look/prove"}
	values := map[string]string{}
	define := regexp.MustCompile(`(?m)^\t(\w+) +Do = "([a-z0-9-]+)"`)
	use := regexp.MustCompile(`\bfault\.([A-Z]\w*)`)
	each := func(dir string, look func(text string)) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join("internal", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				look(string(text))
			}
		}
	}
	each("fault", func(text string) {
		for _, m := range define.FindAllStringSubmatch(text, -1) {
			values[m[1]] = m[2]
		}
	})
	used, words := map[string]bool{}, weir.Spelled()
	for _, dir := range core {
		each(dir, func(text string) {
			for _, m := range use.FindAllStringSubmatch(text, -1) {
				if do, is := values[m[1]]; is && m[1] != "Save" { // of weir restore alone
					used[do] = true
				}
			}
		})
	}
	for do := range used {
		if words[do] == "" {
			t.Errorf("%s has no words", do)
		}
	}
	for do := range words {
		if !used[do] {
			t.Errorf("%s has words, and nobody says it", do)
		}
	}
	if len(used) < 20 {
		t.Errorf("only %d", len(used))
	}
}

// Options reach the core.
func TestOptions(t *testing.T) {
	root, remove := copyOf("v2")
	defer remove()
	h, err := weir.Open(weir.Options{Root: root, CgroupVersion: 1, Sockets: map[string]string{"docker": "unix:///x"}, Program: "/usr/bin/weir"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if program, err := weir.Inner(h).Program(); weir.Inner(h).Socket("docker") != "unix:///x" || program != "/usr/bin/weir" || err != nil {
		t.Errorf("%q, %v", program, err)
	}
	if _, err := h.ShowAll(context.Background(), 0); !errors.Is(err, weir.ErrNotPossible) {
		t.Errorf("cgroup v1 is not mounted: %v", err)
	}
	report, err := h.Why(context.Background(), "", weir.WhyRequest{})
	if held, ok := report.Held(); report.Group != nil || held || ok || err != nil {
		t.Errorf("%+v, %v", report, err)
	}
}

// A wrong root is an error with its cause.
func TestOpenRefuses(t *testing.T) {
	_, err := weir.Open(weir.Options{Root: filepath.Join(t.TempDir(), "none")})
	var e *weir.Error
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A refused write changes nothing, and its cause is in the error.
func TestSetIsTakenBack(t *testing.T) {
	h, done := open("v2")
	defer done()
	k := standIn(h)
	full := errors.New("no space")
	k.Refuse = func(file, _ string) error {
		if strings.HasSuffix(file, "io.max") {
			return full
		}
		return nil
	}
	change, err := h.Set(context.Background(), "cgroup:/batch", weir.SetRequest{Limits: []weir.Limit{{On: "/data", Rates: weir.Rates{WBPS: 1e6}}}})
	if !errors.Is(err, full) || len(change.Devices) != 0 {
		t.Errorf("%+v, %v", change, err)
	}
	for _, class := range []error{weir.ErrNotFound, weir.ErrDenied, weir.ErrNotPossible, weir.ErrWrongUse} {
		if errors.Is(err, class) {
			t.Errorf("%v is %v", err, class)
		}
	}
	k.Refuse = nil
	shown, err := h.Show(context.Background(), "cgroup:/batch", 0)
	if err != nil || len(shown.Devices) != 2 || shown.Devices[1].Limit != (weir.Rates{RBPS: 50 << 20, WBPS: weir.Unlimited, RIOPS: weir.Unlimited, WIOPS: weir.Unlimited}) {
		t.Errorf("%+v, %v", shown, err)
	}
}
