package weir_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/annotations"
	"github.com/weir-io/weir/internal/plans"
)

// The plans and annotations of the guide are taken as they stand there.
func TestKubernetesGuide(t *testing.T) {
	text, err := os.ReadFile("docs/guide/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "~~~yaml\n")[1:]
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of YAML", len(blocks))
	}
	file, pod := strings.Split(blocks[0], "~~~")[0], strings.Split(blocks[1], "~~~")[0]
	if c, err := plans.Read([]plans.File{{Name: "guide", Text: []byte(file)}}); err != nil || len(c.Plans) != 2 || len(c.Assignments) != 2 {
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
