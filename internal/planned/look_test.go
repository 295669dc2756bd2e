package planned

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/targets"
)

func TestAsked(t *testing.T) {
	w := newWorld(t, "v2")
	m := w.manager(t, twoPlans+"default: db\n")
	small := limit.Limit{WBPS: limit.PerSecond(10e6)}
	for _, c := range []struct {
		spec, plan string
		want       []limit.Asked
	}{
		{"docker:web", "small", []limit.Asked{{Limit: small}}},
		{"docker:web", "db", []limit.Asked{{On: "/data", Limit: limit.Limit{WBPS: limit.PerSecond(50e6)}}, {On: "254:0", Limit: small}}},
	} {
		if got, err := m.Asked(t.Context(), c.spec, c.plan); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v", c.plan, got, err)
		}
	}
	var none *targets.NotFound
	if _, err := m.Asked(t.Context(), "cgroup:/nowhere", "db"); !errors.As(err, &none) {
		t.Error(err)
	}
	if _, err := m.AskedHere(t.Context(), "dbb"); err == nil || err.Error() != `plan "dbb": there is no such plan; did you mean db?` {
		t.Error(err)
	}
	if _, err := w.manager(t, "").AskedHere(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "there is no plan; write one into a file in /etc/weir/plans.d") {
		t.Error(err)
	}
}

func TestFactsOf(t *testing.T) {
	own := func(f plans.Facts) string {
		if f.Own == nil {
			return "-"
		}
		return *f.Own
	}
	for _, c := range []struct {
		listed targets.Listed
		own    string
		user   uint32
	}{
		{targets.Listed{Kind: "docker", Name: "x", Labels: map[string]string{"weir.plan": "p"}}, "p", 0},
		{targets.Listed{Kind: "docker", Name: "x", Labels: map[string]string{"weir.io/plan": "p"}}, "-", 0},
		{targets.Listed{Kind: "pod", Name: "a/x", Labels: map[string]string{"weir.plan": "p"}, Annotations: map[string]string{"weir.io/plan": "q"}}, "q", 0},
		{targets.Listed{Kind: "unit", Name: "user-1000.slice"}, "-", 1000},
		{targets.Listed{Kind: "unit", Name: "user-.slice"}, "-", 0},
		{targets.Listed{Kind: "unit", Name: "user-99999999999.slice"}, "-", 0},
		{targets.Listed{Kind: "docker", Name: "user-1000.slice"}, "-", 0},
	} {
		f := factsOf(c.listed)
		if own(f) != c.own || (f.User != nil) != (c.user != 0) || f.User != nil && *f.User != c.user {
			t.Errorf("%+v: %+v", c.listed, f)
		}
	}
}

func TestLoad(t *testing.T) {
	root := t.TempDir()
	if c, err := Load(root, "", planfile.Read); err != nil || len(c.Files) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	dir := filepath.Join(root, Dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"b.yml": "assign: [{docker: x, plan: a}]", "a.yaml": "plans: {a: {read: 5}}", "c.yaml.bak": "{{{", "README": "no"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Load(root, "", planfile.Read)
	if err != nil || len(c.Files) != 2 || filepath.Base(c.Files[0]) != "a.yaml" || len(c.Assignments) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Load("/", filepath.Join(dir, "a.yaml"), planfile.Read); err != nil || len(c.Plans) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Load("/", filepath.Join(dir, "none"), planfile.Read); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "d.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(root, "", planfile.Read); err == nil || !strings.Contains(err.Error(), "d.yaml: not a regular file") {
		t.Error(err)
	}
}

// A file of a user's, which root names with --plans, is read whole or not at all.
func TestLoadOfAUsersFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	bomb := "plans: {a: &a [x,x,x,x], b: &b [*a,*a,*a,*a], c: [*b,*b,*b,*b]}\n"
	if err := errors.Join(syscall.Mkfifo(at("fifo"), 0o600), os.Symlink("/dev/zero", at("device")), os.Symlink("circle", at("circle")), os.WriteFile(at("holes"), nil, 0o600), os.Truncate(at("holes"), 1<<40),
		os.WriteFile(at("long"), bytes.Repeat([]byte("plans: {}\n"), 1<<20), 0o600), os.WriteFile(at("bomb"), []byte(bomb), 0o600), os.WriteFile(at("deep"), bytes.Repeat([]byte("["), 500_000), 0o600),
		os.WriteFile(at("odd"), []byte("plans: {\"\\e[2J\": {write: 1}}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"fifo": "not a regular file", "device": "not a regular file", "circle": "too many levels", "holes": "bytes", "long": "bytes", "bomb": "aliases", "deep": "", "odd": `\x1b[2J`} {
		if _, err := Load("/", at(name), planfile.Read); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 4000 || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %.300v, want %q", name, err, want)
		}
	}
}

// A target is found in its owner's list, whatever the user calls it.
func TestListedAs(t *testing.T) {
	lists := map[string][]targets.Listed{
		"docker": {{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID}},
		"unit":   {{Kind: "unit", Name: "nginx.service"}}, "vm": {{Kind: "vm", Name: "db"}},
		"pod": {{Kind: "pod", Name: "ci/x"}}, "containerd": {{Kind: "containerd", Name: "default/x", ID: "x"}},
	}
	for _, c := range []struct {
		kind, name string
		owner      targets.Owner
		want       string
	}{
		{"docker", "3f2a", targets.Owner{Kind: "docker", Name: webID[:12]}, "docker:web"},
		{"cgroup", "/docker/" + webID, targets.Owner{Kind: "docker", Name: webID[:12]}, "docker:web"},
		{"docker", "web", targets.Owner{Kind: "docker", Name: dbID[:12]}, ":"}, // another one has the name by now
		{"unit", "nginx", targets.Owner{Kind: "systemd", Name: "nginx.service"}, "unit:nginx.service"},
		{"pid", "7", targets.Owner{Kind: "systemd", Name: "nginx.service"}, "unit:nginx.service"},
		{"vm", "db", targets.Owner{Kind: "libvirt", Name: "db"}, "vm:db"},
		{"pod", "u1", targets.Owner{Kind: "kubernetes", Name: "ci/x"}, "pod:ci/x"},
		{"containerd", "default/x", targets.Owner{Kind: "unknown"}, "containerd:default/x"},
		{"cgroup", "/batch", targets.Owner{Kind: "unknown"}, ":"},
	} {
		got, ok := listedAs(lists, c.kind, c.name, c.owner)
		if got.String() != c.want || ok != (c.want != ":") {
			t.Errorf("%s:%s of %v: %s, %v", c.kind, c.name, c.owner, got, ok)
		}
	}
}

// What is known of plans stands beside the limits; what cannot be read or asked is said, and keeps
// nothing from being shown.
func TestMark(t *testing.T) {
	w := newWorld(t, "v2")
	w.apply(t, assigned)
	dir := filepath.Join(w.host.Root, Dir)
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	mark := func() (string, []string) {
		t.Helper()
		shown, err := limiting.Manager{Host: w.host}.ShowAll(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var texts, plans []string
		for _, n := range Mark(t.Context(), w.host, planfile.Read, &shown) {
			texts = append(texts, n.Text)
		}
		for _, g := range shown.Groups {
			if g.Plan != nil {
				plans = append(plans, fmt.Sprintf("%s %s %t", g.Target, g.Plan.Name, g.Plan.Differs))
			}
		}
		slices.Sort(plans)
		return strings.Join(plans, ", "), texts
	}
	if got, notes := mark(); got != "" || notes != nil {
		t.Errorf("without plans: %s, %q", got, notes)
	}
	write(assigned)
	if got, notes := mark(); got != "docker:db db false, docker:web small false" || notes != nil {
		t.Errorf("%s, %q", got, notes)
	}
	write(strings.Replace(assigned, "10MB/s", "11MB/s", 1))
	if got, notes := mark(); got != "docker:db db true, docker:web small true" || notes != nil {
		t.Errorf("%s, %q", got, notes)
	}
	w.list = "x"
	if got, notes := mark(); got != "" || len(notes) != 1 || !strings.Contains(notes[0], "weir cannot tell which plan a target of the kind docker has") {
		t.Errorf("%s, %q", got, notes)
	}
	write("plans: 5")
	if got, notes := mark(); got != "" || len(notes) != 1 || !strings.Contains(notes[0], "a.yaml:1:8: plans is a mapping") {
		t.Errorf("%s, %q", got, notes)
	}
}
