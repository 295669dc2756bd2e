package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"
)

// top is the repository, from here.
const top = "../../.."

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var named = regexp.MustCompile(`\bweir_[a-z_]+\b`)

// namesIn are the metrics that a text names. That of a histogram has several series.
func namesIn(text string) []string {
	names := named.FindAllString(text, -1)
	for i, name := range names {
		for _, m := range All() {
			if m.Type == dto.MetricType_HISTOGRAM && slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name) {
				names[i] = m.Name
			}
		}
	}
	return names
}

// checkNames checks that an expression has names of metrics, and that these are there.
func checkNames(t *testing.T, where, expr string) {
	t.Helper()
	names := namesIn(expr)
	if len(names) == 0 {
		t.Errorf("%s: %q has no metric of weir", where, expr)
	}
	for _, name := range names {
		i := slices.IndexFunc(All(), func(m Metric) bool { return m.Name == name })
		if i < 0 {
			t.Errorf("%s: there is no metric %s", where, name)
		} else if counts := All()[i].Type != dto.MetricType_GAUGE; counts != strings.Contains(expr, "rate("+name) {
			t.Errorf("%s: %q: a rate is for counters, and only for them", where, expr)
		}
	}
}

func TestAlertRulesNameMetrics(t *testing.T) {
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(read(t, "contrib/prometheus/weir.rules.yml"), &file); err != nil {
		t.Fatal(err)
	}
	tested := string(read(t, "contrib/prometheus/weir.rules.test.yml"))
	page := string(read(t, "docs/metrics.md"))
	rules := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			checkNames(t, r.Alert, r.Expr)
			if !strings.Contains(tested, "alertname: "+r.Alert+"\n        exp_alerts:") {
				t.Errorf("%s: no test has it fire", r.Alert)
			}
			if !strings.Contains(page, "`"+r.Alert+"`") {
				t.Errorf("%s: docs/metrics.md does not have it", r.Alert)
			}
		}
	}
	if rules < 5 {
		t.Errorf("%d rules", rules)
	}
}

func TestDashboardNamesMetrics(t *testing.T) {
	var board struct {
		Panels []struct {
			Title, Description string
			GridPos            struct{ X, Y, W, H int }
			Targets            []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal(read(t, "contrib/grafana/weir.json"), &board); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for i, p := range board.Panels {
		if len(p.Targets) == 0 || p.Description == "" {
			t.Errorf("%s shows nothing, or does not say what", p.Title)
		}
		for _, q := range p.Targets {
			checkNames(t, p.Title, q.Expr)
			for _, name := range namesIn(q.Expr) {
				shown[name] = true
			}
		}
		for _, o := range board.Panels[:i] {
			a, b := p.GridPos, o.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				t.Errorf("%q and %q are at the same place", p.Title, o.Title)
			}
		}
	}
	for _, v := range board.Templating.List {
		if v.Type == "query" {
			checkNames(t, "variable "+v.Name, v.Definition)
			shown[named.FindString(v.Definition)] = true
		}
	}
	for _, m := range All() {
		if !shown[m.Name] {
			t.Errorf("the dashboard does not show %s", m.Name)
		}
	}
}

// docs/metrics.md has a line for each metric, and no other.
func TestDocumented(t *testing.T) {
	page := string(read(t, "docs/metrics.md"))
	for _, m := range All() {
		kind := strings.ToLower(m.Type.String())
		if row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.Name, kind, strings.Join(m.Labels, ", "), m.Help); !strings.Contains(page, row) {
			t.Errorf("docs/metrics.md lacks\n%s", row)
		}
	}
	for _, name := range namesIn(page) {
		if !slices.ContainsFunc(All(), func(m Metric) bool { return m.Name == name }) {
			t.Errorf("docs/metrics.md has %s, which is no metric", name)
		}
	}
}
