package weir_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/weir-io/weir/contrib"
	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/plans/planfile"
)

// The plans and annotations of the guide are taken as they stand there.
func TestKubernetesGuide(t *testing.T) {
	text, err := os.ReadFile("docs/guide/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "~~~yaml\n")[1:]
	if len(blocks) != 3 {
		t.Fatalf("%d blocks of YAML", len(blocks))
	}
	values, file, pod := strings.Split(blocks[0], "~~~")[0], strings.Split(blocks[1], "~~~")[0], strings.Split(blocks[2], "~~~")[0]
	var chart struct{ Plans yaml.Node }
	if err := yaml.Unmarshal([]byte(values), &chart); err != nil { // it is indented as a whole, which YAML takes
		t.Fatal(err)
	}
	inside, err := yaml.Marshal(&chart.Plans)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := planfile.Read([]plans.File{{Name: "values", Text: inside}}); err != nil || len(c.Plans) != 1 || len(c.Assignments) != 1 {
		t.Errorf("%+v, %v in\n%s", c, err, inside)
	}
	if c, err := planfile.Read([]plans.File{{Name: "guide", Text: []byte(file)}}); err != nil || len(c.Plans) != 2 || len(c.Assignments) != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	asked := map[string]string{}
	for _, line := range regexp.MustCompile(`(?m)^ +(weir\.io/\S+): (.*)$`).FindAllStringSubmatch(pod, -1) {
		asked[line[1]] = strings.Trim(line[2], `"`)
	}
	if p, err := annotations.Parse(asked); err != nil || p.Limit.IsZero() || len(p.On) != 1 {
		t.Errorf("%q: %+v, %v", asked, p, err)
	}
	// Of the table every name exists, and of the values every one is taken, or refused as it says.
	for name, value := range map[string]string{"plan": "small", "read": "10Mi", "write": "10M", "read-iops": "500", "write-iops": "1k", "on.VOLUME": "write=2Mi read=10Mi",
		"on.rootfs": "write=1.5Gi", "on.NAME": "path=/data write=1Mi", "plan.CONTAINER": "small", "write.CONTAINER": "1Mi"} {
		if !strings.Contains(string(text), "`weir.io/"+name+"`") {
			t.Errorf("the guide does not name weir.io/%s", name)
		}
		name = strings.ToLower(name)
		if _, err := annotations.Parse(map[string]string{"weir.io/" + name: value}); err != nil {
			t.Error(err)
		}
	}
	if _, err := annotations.Parse(map[string]string{"weir.io/write": "10MB/s"}); err == nil {
		t.Error("10MB/s is taken")
	}
}

// Each capability and each mount of weird's pod has its reason beside it, and the manifest is for this
// version.
func TestKubernetesManifest(t *testing.T) {
	text := contrib.Kubernetes
	for _, line := range regexp.MustCompile(`(?m)^ +- [A-Z_]+\b.*$`).FindAllString(text, -1) {
		if !regexp.MustCompile(`- [A-Z_]+ # \S+ \S+`).MatchString(line) {
			t.Errorf("there is no reason for %s", strings.TrimSpace(line))
		}
	}
	lines := strings.Split(text, "\n")
	mounts := 0
	for i, line := range lines {
		if strings.Contains(line, "mountPath: ") {
			mounts++
			if !strings.Contains(lines[i-1], "# ") {
				t.Errorf("there is no reason for %s", strings.TrimSpace(line))
			}
		}
	}
	if mounts < 8 || strings.Contains(text, "privileged") {
		t.Errorf("%d mounts in\n%s", mounts, text)
	}
	guide, err := os.ReadFile("docs/guide/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	if key := regexp.MustCompile(`tolerate_missing_plugins_annotation = "(.+)"`).FindSubmatch(guide); key == nil || !strings.Contains(text, string(key[1])+`: "true"`) {
		t.Errorf("weird's own pod starts nothing where weir is required: %q", key)
	}
	log, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^## \[?([0-9][^] ]*)`).FindSubmatch(log)[1]
	if !strings.Contains(text, `image: "weir:`+string(version)+`"`) {
		t.Errorf("the manifest is not for %s: run make kube-base with that appVersion in Chart.yaml", version)
	}
}

// The chart takes the plans that weird takes: one that weird refuses keeps it from its next start, and its node's pods are
// not limited then.
func TestChartKnowsPlans(t *testing.T) {
	type schema struct {
		Properties map[string]json.RawMessage
		Defs       map[string]json.RawMessage `json:"$defs"`
	}
	var values, plans schema
	for file, into := range map[string]*schema{"contrib/kubernetes/chart/values.schema.json": &values, "docs/plans.schema.json": &plans} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(file, err)
		}
	}
	var chart schema
	if err := json.Unmarshal(values.Properties["plans"], &chart); err != nil {
		t.Fatal(err)
	}
	for what, of := range map[string][2]map[string]json.RawMessage{"property": {plans.Properties, chart.Properties}, "definition": {plans.Defs, values.Defs}} {
		for name, want := range of[0] {
			if got := of[1][name]; compact(t, got) != compact(t, want) {
				t.Errorf("%s %s is\n%s\nwant that of docs/plans.schema.json:\n%s", what, name, got, want)
			}
		}
	}
	if len(chart.Properties) != len(plans.Properties) || len(plans.Defs) < 5 {
		t.Errorf("%d properties, want %d; %d definitions", len(chart.Properties), len(plans.Properties), len(plans.Defs))
	}
}

func compact(t *testing.T, text json.RawMessage) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Error(err)
	}
	return b.String()
}

// The commands of the guide are there: targets of the Makefile, files, and weird's.
func TestKubernetesGuideCommands(t *testing.T) {
	guide, err := os.ReadFile("docs/guide/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)\bmake ([a-z-]+)`).FindAllStringSubmatch(string(guide), -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("there is no make %s", m[1])
		}
	}
	files := regexp.MustCompile(`\bcontrib/[\w./-]*\w|\bout/weir\.tar\b`).FindAllString(string(guide), -1)
	if len(files) < 3 {
		t.Errorf("it names %q", files)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil && file != "out/weir.tar" {
			t.Error(err)
		}
	}
	values, err := os.ReadFile("contrib/kubernetes/chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`--set ([a-zA-Z]+)[.=]`).FindAllStringSubmatch(string(guide), -1) {
		if !strings.Contains(string(values), "\n"+m[1]+":") {
			t.Errorf("the chart has no value %s", m[1])
		}
	}
}
