package planfile

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plans"
)

// example is a whole file.
const example = `plans:
  small: {read: 20MB/s, write: 10MB/s, write-iops: 500}
  db:    {extends: small, write: 100MB/s, on: [{path: /var/lib/mysql, write: 200MB/s}]}
  big-db:
    extends: db
    write-iops: max
    on:
      - {path: /var/lib/mysql, read: 1.5GiB/s}
      - {path: "8:0", read-iops: 1.5k}
assign:
  - {docker: "web-*", plan: small}
  - {docker: "db-[0-9]", label: {tier: gold, "empty": ""}, plan: db}
  - {unit: "batch-*.service", plan: small}
  - {label: {tier: gold}, plan: db}
  - {pod: {namespace: ci}, plan: small}
  - {pod: {name: "x*"}, label: {a: b}, plan: none}
  - {user: "1000-1999", plan: small}
  - {user: 4000, plan: db}
  - {vm: "*", plan: big-db}
  - {containerd: "k8s.io/*", plan: small}
  - {podman: web, plan: small}
allow-labels: [small, db]
default: none
`

func one(text string) []plans.File { return []plans.File{{Name: "a.yaml", Text: []byte(text)}} }

func bps(k limit.Key, n uint64) limit.Limit { return limit.Limit{}.With(k, limit.PerSecond(n)) }

func TestRead(t *testing.T) {
	c, err := Read(one(example))
	if err != nil {
		t.Fatal(err)
	}
	small := bps(limit.RBPS, 20e6).With(limit.WBPS, limit.PerSecond(10e6)).With(limit.WIOPS, limit.PerSecond(500))
	db := small.With(limit.WBPS, limit.PerSecond(100e6))
	want := []plans.Plan{
		{Name: "small", At: plans.Position{File: "a.yaml", Line: 2, Column: 3}, Limit: small},
		{Name: "db", At: plans.Position{File: "a.yaml", Line: 3, Column: 3}, Extends: "small", Limit: db, On: []limit.Asked{{On: "/var/lib/mysql", Limit: bps(limit.WBPS, 200e6)}}},
		{Name: "big-db", At: plans.Position{File: "a.yaml", Line: 4, Column: 3}, Extends: "db", Limit: db.With(limit.WIOPS, limit.Unlimited), On: []limit.Asked{
			{On: "/var/lib/mysql", Limit: bps(limit.WBPS, 200e6).With(limit.RBPS, limit.PerSecond(3<<29))},
			{On: "8:0", Limit: bps(limit.RIOPS, 1500)}}},
	}
	if !reflect.DeepEqual(c.Plans, want) {
		t.Errorf("plans\n%+v\nwant\n%+v", c.Plans, want)
	}
	if len(c.Assignments) != 11 || !reflect.DeepEqual(c.AllowLabels, []string{"small", "db"}) || c.Default != plans.None {
		t.Errorf("%+v", c)
	}
	if a := c.Assignments[1]; a.Kind != "docker" || a.Name != "db-[0-9]" || !reflect.DeepEqual(a.Labels, map[string]string{"tier": "gold", "empty": ""}) || a.At != (plans.Position{File: "a.yaml", Line: 12, Column: 5}) {
		t.Errorf("%+v", a)
	}
	if a := c.Assignments[6]; a.Kind != "user" || a.From != 1000 || a.To != 1999 {
		t.Errorf("%+v", a)
	}
}

// What one file has, another one can name; an extended plan may stand after the one that extends
// it, and assignments stay in order.
func TestReadFiles(t *testing.T) {
	c, err := Read([]plans.File{
		{Name: "1.yaml", Text: []byte("assign: [{docker: a, plan: b}]\nplans: {b: {extends: c, read: 1k}}\n")},
		{Name: "2.yaml", Text: []byte("# nothing\n")},
		{Name: "3.yaml", Text: []byte("plans: {c: {write: 5}}\nassign: [{docker: b, plan: c}]\ndefault: c\nallow-labels: [b, c, b]\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := c.Plan("b")
	if b.Limit != bps(limit.RBPS, 1000).With(limit.WBPS, limit.PerSecond(5)) || c.Default != "c" || len(c.AllowLabels) != 2 {
		t.Errorf("%+v", c)
	}
	if a := c.Assignments; len(a) != 2 || a[0].Plan != "b" || a[1].At.File != "3.yaml" {
		t.Errorf("%+v", a)
	}
	if _, there := c.Plan("x"); there || fmt.Sprint(c.Names()) != "[b c]" || fmt.Sprint(c.Files) != "[1.yaml 2.yaml 3.yaml]" {
		t.Errorf("%+v", c)
	}
}

// A refused file, with what is said of it.
type refused struct {
	text, want string
	// beyond says that the form is right, so that the published schema takes the file: a schema
	// sees values and not how they are written, and not what a name refers to.
	beyond bool
}

func refusals() []refused {
	const p = "plans: {p: {read: 1k}}\n"
	return []refused{
		{"plans: {p: {writ: 1k}}", `a.yaml:1:13: plan p has no key "writ"; did you mean write?`, false},
		{"plan: {p: {read: 1k}}", `a.yaml:1:1: the file has no key "plan"; did you mean plans?`, false},
		{"plans:\n  p:\n    read: 1k\n    on:\n      - {pathe: /data, read: 1k}\n", `a.yaml:5:10: on has no key "pathe"; did you mean path?`, false},
		{p + "assign: [{dokcer: x, plan: p}]", `a.yaml:2:11: assign has no key "dokcer"; did you mean docker?`, false},
		{p + "assign: [{pod: {nmespace: x}, plan: p}]", `a.yaml:2:17: pod has no key "nmespace"; did you mean namespace?`, false},
		{"plans: {p: {zzzzzzz: 1k}}", `plan p has no key "zzzzzzz"; write read, write, read-iops, write-iops, extends or on`, false},
		{"[a]", "a.yaml:1:1: the file is a mapping: write KEY: VALUE", false},
		{"plans:\n", "a.yaml:1:7: plans is a mapping", false},
		{"plans: {p: }", "a.yaml:1:12: plan p is a mapping", false},
		{"plans: {p: {}}", "a.yaml:1:12: plan p has no limit: write read", false},
		{"plans: {p: {on: []}}", "a.yaml:1:9: plan p has no limit", true},
		{"plans: {none: {read: 1k}}", `no plan can have the name "none"`, false},
		{"plans: {-x: {read: 1k}}", `"-x" is no name for a plan`, false},
		{"plans: {../x: {read: 1k}}", `"../x" is no name for a plan`, false},
		{"plans: {" + strings.Repeat("a", 64) + ": {read: 1k}}", "is no name for a plan: write at most 63", false},
		{"plans: {7: {read: 1k}}", "a.yaml:1:9: plans has a key that is no text", true},
		{"plans: {p: {read: 1k}, p: {read: 2k}}", `a.yaml:1:24: plans has the key "p" twice, first in line 1`, false},
		{"plans: {p: {read: 10Mbit/s}}", `a.yaml:1:19: read: rate "10Mbit/s": "Mbit/s" is in bits`, false},
		{"plans: {p: {read: 0}}", "a rate cannot be zero", false},
		{"plans: {p: {read: 0.0 MB/s}}", "a rate cannot be zero", false},
		{"plans: {p: {write: -5}}", "a rate cannot be negative", false},
		{"plans: {p: {write: fast}}", "not a rate", false},
		{"plans: {p: {write: true}}", "write is a rate", false},
		{"plans: {p: {write: }}", "write is a rate", false},
		{"plans: {p: {write: [1k]}}", "write is a rate", false},
		{"plans: {p: {write-iops: 10MB/s}}", `write-iops: rate "10MB/s"`, false},
		{"plans: {p: {write-iops: 5000000000}}", "too large", false},
		{"plans: {p: {write: 9999999999G}}", "too large", true},
		{"plans: {p: {write: 1e6}}", "unknown suffix", true},
		{"plans: {p: {write: 1_000}}", "unknown suffix", true},
		{"plans: {p: {write: \"" + strings.Repeat("1", 64) + "\"}}", "it has 64 bytes", false},
		{"plans: {p: {on: {path: /data, read: 1k}}}", "on is a list", false},
		{"plans: {p: {on: [{read: 1k}]}}", "a.yaml:1:18: on has no path", false},
		{"plans: {p: {on: [{path: /data}]}}", "on has no limit", false},
		{"plans: {p: {on: [{path: 5, read: 1k}]}}", `path is a text: write it in quotes, "5"`, false},
		{"plans: {p: {on: [{path: \"\", read: 1k}]}}", "path is missing", false},
		{"plans: {p: {on: [/data]}}", "on is a mapping", false},
		{"plans: {p: {on: [{path: /a, read: 1k}, {path: /a, read: 2k}]}}", `"/a" is given twice in one plan`, true},
		{"plans: {p: {on: [" + strings.Repeat("{path: /a, read: 1k}, ", 65) + "]}}", "on has 65 entries, and at most 64 are possible", false},
		{"plans: {p: {extends: q}}", `a.yaml:1:22: plan p: there is no plan "q"`, true},
		{"plans: {small: {read: 1k}, p: {extends: smal}}", `there is no plan "smal"; did you mean small?`, true},
		{"plans: {p: {extends: none}}", `there is no plan "none"`, true},
		{"plans: {p: {extends: p}}", "a.yaml:1:22: plans extend each other in a loop: p extends p", true},
		{"plans: {x: {extends: a}, a: {extends: b}, b: {extends: c}, c: {extends: a}}", "a.yaml:1:39: plans extend each other in a loop: a extends b extends c extends a", true},
		{p + "assign: [{plan: p}]", "a.yaml:2:10: assign does not say which targets", false},
		{p + "assign: [{docker: x}]", "assign has no plan", false},
		{p + "assign: [{docker: x, podman: y, plan: p}]", "assign names docker and podman", false},
		{p + "assign: [{unit: x.service, label: {a: b}, plan: p}]", "a unit has no labels", false},
		{p + "assign: [{user: 5, label: {a: b}, plan: p}]", "a user has no labels", false},
		{p + "assign: [{docker: x, plan: q}]", `a.yaml:2:28: assign: there is no plan "q"; write p`, true},
		{p + "assign: [{docker: \"[x\", plan: p}]", "is no pattern", true},
		{p + "assign: [{unit: nginx, plan: p}]", "write the whole name, such as nginx.service", false},
		{p + "assign: [{unit: nginx.timer, plan: p}]", "write the whole name", false},
		{p + "assign: [{user: 1000-, plan: p}]", "user is a number or a range", false},
		{p + "assign: [{user: 2000-1000, plan: p}]", "user is a number or a range", true},
		{p + "assign: [{user: 5000000000, plan: p}]", "user is a number or a range", false},
		{p + "assign: [{user: root, plan: p}]", "user is a number or a range", false},
		{p + "assign: [{pod: {}, plan: p}]", "pod names nothing", false},
		{p + "assign: [{pod: ci, plan: p}]", "pod is a mapping", false},
		{p + "assign: [{label: {}, plan: p}]", "label has 0 entries", false},
		{p + "assign: [{label: {a: 1}, plan: p}]", `the label "a" is a text: write it in quotes, "1"`, false},
		{p + "assign: [{label: {\"\": x}, plan: p}]", "label has a key without a name", false},
		{p + "assign: {docker: x, plan: p}", "assign is a list", false},
		{p + "allow-labels: p", "allow-labels is a list", false},
		{p + "allow-labels: [none]", `a target cannot choose "none"`, false},
		{p + "allow-labels: [q]", `allow-labels: there is no plan "q"`, true},
		{p + "default: q", `default: there is no plan "q"`, true},
		{p + "default: 5", "default is a text", false},
		{p + "default: \"p\\u001b[2J\"", "default has characters that cannot be shown", true},
		{"a: &x {b: *x}", "anchors and aliases", false},
		{"plans: {p: &x {read: 1k}}", "a.yaml:1:12: anchors and aliases (& and *) are not taken; a plan takes over another one with extends", true},
		{"plans: {p: &x {read: 1k}, q: *x}", "anchors and aliases", true},
		{"plans: {p: {read: !!str 1k}}", "a.yaml:1:19: tags (!!str) are not taken", true},
		{p + "---\n" + p, "a second document begins here", true},
		{"plans: {p: {on: [[[[[[[[[]]]]]]]]]}}", "nested too deep", false},
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range append(refusals(), []refused{
		{text: "plans:\n  p: [}\n", want: "a.yaml:2: not YAML: "},
		{text: "\tplans:\n", want: "a.yaml: not YAML: "},
		{text: "plans: \x00", want: "a.yaml: not YAML: control characters are not allowed"},
		{text: "plans: \xff", want: "a.yaml: not YAML: invalid leading UTF-8 octet"},
		{text: strings.Repeat("[", 20000), want: "not YAML: exceeded max depth"},
		{text: strings.Repeat("#", plans.FileBytesMax+1), want: "a.yaml: the file is larger than 1048576 bytes"},
	}...) {
		config, err := Read(one(c.text))
		var refusal *plans.Refusal
		if config != nil || !errors.As(err, &refusal) || fault.ClassOf(err) != fault.WrongUse || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: %v, want %s", c.text, err, c.want)
		}
	}
}

// All that is wrong is said at once, to a bound; what two files have both is refused in the second.
func TestRefusalsOfFiles(t *testing.T) {
	_, err := Read([]plans.File{{Name: "1.yaml", Text: []byte("plans: {p: {reed: 1k}, q: {write: x}}\n")}, {Name: "2.yaml", Text: []byte("defalt: p\n")}})
	if got := fmt.Sprint(err); strings.Count(got, "\n") != 2 || !strings.Contains(got, "\n2.yaml:1:1: ") {
		t.Error(got)
	}
	_, err = Read([]plans.File{{Name: "1.yaml", Text: []byte("plans: {p: {read: 1k}}\ndefault: p\n")}, {Name: "2.yaml", Text: []byte("plans: {p: {read: 1k}}\ndefault: p\n")}})
	if got, want := fmt.Sprint(err), "2.yaml:1:9: plan p is given twice, first in 1.yaml:1:9\n2.yaml:2:10: default is given twice, first in 1.yaml:2:10"; got != want {
		t.Error(got)
	}
	_, err = Read(one("plans:\n" + strings.Repeat("  p: {x: 1}\n", 500)))
	if got := fmt.Sprint(err); strings.Count(got, "\n") != refusalsMax-1 {
		t.Error(got)
	}
	var many strings.Builder
	many.WriteString("plans:\n")
	for i := range plansMax + 1 {
		fmt.Fprintf(&many, "  p%d: {extends: p%d}\n", i, i+1)
	}
	if _, err = Read(one(many.String())); !strings.HasSuffix(fmt.Sprint(err), "there are more than 1000 plans") {
		t.Error(err)
	}
	if _, err = Read(make([]plans.File, plans.FilesMax+1)); !strings.Contains(fmt.Sprint(err), "these are 257 files") {
		t.Error(err)
	}
}

// A chain as long as there may be plans is no loop.
func TestLongChain(t *testing.T) {
	var text strings.Builder
	text.WriteString("plans:\n")
	for i := range plansMax - 1 {
		fmt.Fprintf(&text, "  p%d: {extends: p%d}\n", i, i+1)
	}
	fmt.Fprintf(&text, "  p%d: {read: 7}\n", plansMax-1)
	c, err := Read(one(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := c.Plan("p0"); p.Limit != bps(limit.RBPS, 7) {
		t.Errorf("%+v", p)
	}
}

// A plan has the places of all that it extends, and no more than a plan may have: a chain of a thousand plans would
// have millions, each many times.
func TestPlacesOfALongChain(t *testing.T) {
	places := func(plan string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("{path: /%s/%d, read: 1}", plan, i))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	text := "plans:\n  a: {extends: b, on: " + places("a", 32) + "}\n  b: {on: " + places("b", 32) + "}\n"
	c, err := Read(one(text))
	if err != nil || len(c.Plans[0].On) != onMax {
		t.Errorf("%v", err)
	}
	text += "  c: {extends: a, on: " + places("c", 1) + "}\n  d: {extends: c, on: " + places("d", 1) + "}\n"
	_, err = Read(one(text))
	if got, want := fmt.Sprint(err), "a.yaml:4:3: plan c has more than 64 places, with those of the plans that it extends\n"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}

// A file with more mistakes than are told is refused at once: who may only ask could have weird look for what was
// meant for minutes.
func TestManyMistakes(t *testing.T) {
	var names, keys strings.Builder
	names.WriteString("plans:\n")
	for i := range plansMax {
		fmt.Fprintf(&names, "  %s%d: {read: 1}\n", strings.Repeat("a", 50), i)
	}
	names.WriteString("assign:\n")
	for i := range assignmentsMax {
		fmt.Fprintf(&names, "- {docker: x, plan: %s%d}\n", strings.Repeat("b", 50), i)
	}
	for i := range 60_000 {
		fmt.Fprintf(&keys, "%d-assigns: x\n", i)
	}
	for name, text := range map[string]string{"plans that there are not": names.String(), "keys that there are not": keys.String()} {
		if len(text) > plans.FileBytesMax {
			t.Fatal(len(text))
		}
		refused := make(chan error, 1)
		go func() {
			_, err := Read(one(text))
			refused <- err
		}()
		select {
		case err := <-refused:
			if got := fmt.Sprint(err); strings.Count(got, "\n") != refusalsMax-1 {
				t.Errorf("%s: %.300s", name, got)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: it is not refused", name)
		}
	}
}

// FuzzRead: no text makes it panic; what is taken refers to plans that there are, each with a
// limit; what is refused is told in one line for each refusal, which a terminal can show.
func FuzzRead(f *testing.F) {
	f.Add(example)
	for _, c := range refusals() {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read(one(text))
		if err != nil {
			if c != nil || strings.Count(err.Error(), "\n") >= refusalsMax || strings.ContainsAny(err.Error(), "\x1b\x00\r\t") {
				t.Fatalf("%+v, %q", c, err)
			}
			return
		}
		for _, p := range c.Plans {
			if p.Limit.IsZero() && len(p.On) == 0 || !isName(p.Name) || p.Name == plans.None {
				t.Errorf("%+v", p)
			}
		}
		for _, a := range c.Assignments {
			if _, there := c.Plan(a.Plan); !there && a.Plan != plans.None {
				t.Errorf("%+v", a)
			}
		}
	})
}
