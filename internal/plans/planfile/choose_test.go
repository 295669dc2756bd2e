package planfile

import (
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/plans"
)

func TestChoose(t *testing.T) {
	c, err := Read(one(example + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	user := func(n uint32) *uint32 { return &n }
	own := func(s string) *string { return &s }
	gold := map[string]string{"tier": "gold", "empty": "", "x": "y"}
	for _, test := range []struct {
		facts    plans.Facts
		plan, by string
	}{
		{plans.Facts{Kind: "docker", Names: []string{"other", "web-1"}}, "small", "a.yaml:11:5"},
		{plans.Facts{Kind: "podman", Names: []string{"web-1"}}, plans.None, ""},
		{plans.Facts{Kind: "docker", Names: []string{"db-1"}, Labels: gold}, "db", "a.yaml:12:5"},
		{plans.Facts{Kind: "docker", Names: []string{"db-10"}, Labels: gold}, "db", "a.yaml:14:5"},
		{plans.Facts{Kind: "docker", Names: []string{"db-1"}, Labels: map[string]string{"tier": "gold!"}}, plans.None, ""},
		{plans.Facts{Kind: "unit", Names: []string{"batch-1.service"}}, "small", "a.yaml:13:5"},
		{plans.Facts{Kind: "unit", Names: []string{"batch-1.service"}, Labels: gold}, "small", "a.yaml:13:5"},
		{plans.Facts{Kind: "unit", Names: []string{"x.service"}, Labels: gold}, plans.None, ""},
		{plans.Facts{Kind: "pod", Names: []string{"x"}, Namespace: "ci"}, "small", "a.yaml:15:5"},
		{plans.Facts{Kind: "pod", Names: []string{"x"}, Namespace: "prod", Labels: map[string]string{"a": "b"}}, plans.None, "a.yaml:16:5"},
		{plans.Facts{Kind: "unit", Names: []string{"user-1999.slice"}, User: user(1999)}, "small", "a.yaml:17:5"},
		{plans.Facts{Kind: "unit", Names: []string{"user-2000.slice"}, User: user(2000)}, plans.None, ""},
		{plans.Facts{Kind: "unit", Names: []string{"user-4000.slice"}, User: user(4000)}, "db", "a.yaml:18:5"},
		{plans.Facts{Kind: "vm", Names: []string{"a b"}}, "big-db", "a.yaml:19:5"},
		{plans.Facts{Kind: "containerd", Names: []string{"k8s.io/x"}}, "small", "a.yaml:20:5"},
		{plans.Facts{Kind: "containerd", Names: []string{"default/x"}}, plans.None, ""},
		{plans.Facts{Kind: "docker", Names: []string{"web-1"}, Own: own("db")}, "db", "its own label"},
		{plans.Facts{Kind: "docker", Names: []string{"web-1"}, Own: own("big-db")}, "small", "a.yaml:11:5"},
		{plans.Facts{Kind: "docker", Names: []string{"zzz"}, Own: own(strings.Repeat("\x1b[2J", 1e6))}, plans.None, ""},
	} {
		got := c.Choose(test.facts)
		refused := test.facts.Own != nil && test.by != "its own label"
		if got.Plan != test.plan || got.By != test.by || (got.Refused != "") != refused || len(got.Refused) > 200 || strings.Contains(got.Refused, "\x1b") {
			t.Errorf("%.200v: %+v, want %s by %q", test.facts, got, test.plan, test.by)
		}
	}
}

// The plan that a namespace names comes after the assignments and before the default, and only if it
// is allowed.
func TestChooseOfANamespace(t *testing.T) {
	c, err := Read(one("plans: {a: {read: 1k}, b: {read: 2k}, c: {read: 3k}}\nallow-labels: [b]\ndefault: a\nassign: [{pod: {name: x}, plan: c}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, c1 := "b", "c"
	for _, test := range []struct {
		name     string
		space    *string
		own      *string
		plan, by string
		refused  bool
	}{
		{"y", &b, nil, "b", "its namespace", false}, {"x", &b, nil, "c", "a.yaml:4:10", false}, {"y", &c1, nil, "a", "default", true}, {"y", nil, nil, "a", "default", false},
		{"y", &c1, &b, "b", "its own label", false}, {"y", &b, &c1, "b", "its namespace", true},
	} {
		if got := c.Choose(plans.Facts{Kind: "pod", Names: []string{test.name}, Namespace: "n", Space: test.space, Own: test.own}); got.Plan != test.plan || got.By != test.by || (got.Refused != "") != test.refused {
			t.Errorf("%+v: %+v", test, got)
		}
	}
}

// The default is for containers, pods and domains, and never for a unit.
func TestChooseDefault(t *testing.T) {
	c, err := Read(one("plans: {p: {read: 1k}}\ndefault: p\nassign: [{docker: free, plan: none}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"docker": "p", "vm": "p", "pod": "p", "unit": plans.None} {
		if got := c.Choose(plans.Facts{Kind: kind, Names: []string{"x"}}); got.Plan != want {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if got := c.Choose(plans.Facts{Kind: "docker", Names: []string{"free"}}); got.Plan != plans.None || got.By == "" {
		t.Errorf("%+v", got)
	}
}

func TestNeeds(t *testing.T) {
	for text, want := range map[string]string{
		"":                                           "",
		"assign: [{docker: x, plan: none}]":          "docker",
		"assign: [{user: 5, plan: none}]":            "unit",
		"assign: [{label: {a: b}, plan: none}]":      "docker podman containerd pod",
		"plans: {p: {read: 5}}\nallow-labels: [p]":   "docker podman containerd pod",
		"plans: {p: {read: 5}}\ndefault: p":          "docker podman containerd pod vm",
		"assign: [{unit: x.service, plan: none}]":    "unit",
		"assign: [{pod: {name: x}, plan: none}]":     "pod",
		"assign: [{vm: x, plan: none}]\nplans: {}\n": "vm",
	} {
		c, err := Read(one(text))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range []string{"docker", "podman", "containerd", "pod", "unit", "vm"} {
			if c.Needs(kind) {
				got = append(got, kind)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
