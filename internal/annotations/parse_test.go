package annotations

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

func TestParse(t *testing.T) {
	p, err := Parse(map[string]string{
		"weir.io/plan": "small", "weir.io/plan.web": "Db_1.x", "weir.io/read": "20Mi", "weir.io/write-iops": "1k", "weir.io/write.web": "5M", "weir.io/read-iops.log-0": "10",
		"weir.io/on.rootfs": "write=1Mi", "weir.io/on.pvc-1.x": " read=2Mi,, write-iops=30 ", "weir.io/on.db": "path=/var/lib/db write=3Mi",
		"other.io/weir": "\x1b", "weir": "x", "weir.io/status": "\x1b", "kubernetes.io/weir.io/read": "x",
	})
	want := Pod{
		Part: Part{"small", limit.Limit{RBPS: limit.PerSecond(20 << 20), WIOPS: limit.PerSecond(1000)}},
		On: []On{{"db", "/var/lib/db", limit.Limit{WBPS: limit.PerSecond(3 << 20)}},
			{"pvc-1.x", "", limit.Limit{RBPS: limit.PerSecond(2 << 20), WIOPS: limit.PerSecond(30)}},
			{Rootfs, "", limit.Limit{WBPS: limit.PerSecond(1 << 20)}}},
		Containers: map[string]Part{"web": {"Db_1.x", limit.Limit{WBPS: limit.PerSecond(5e6)}}, "log-0": {"", limit.Limit{RIOPS: limit.PerSecond(10)}}},
	}
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := Parse(map[string]string{"a": "b"}); err != nil || !p.IsZero() || len(p.Containers) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, one := range []string{"weir.io/plan", "weir.io/read"} {
		if p, err := Parse(map[string]string{one: "1"}); err != nil || p.IsZero() {
			t.Errorf("%s: %+v, %v", one, p, err)
		}
	}
	if p, err := Parse(map[string]string{"weir.io/plan.x": "1"}); err != nil || !p.IsZero() || p.Containers["x"].IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Parse(map[string]string{"weir.io/write-iops": "4294967295"}); err == nil {
		t.Error("the kernel keeps operations in 32 bits")
	}
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, c := range []struct{ name, value, want string }{
		{"weir.io/write", "10MB/s", "annotation weir.io/write: 10MB/s is no Kubernetes quantity; write Ki, Mi, Gi (powers of 1024), k, M, G (of 1000), or a number"},
		{"weir.io/write", "max", "annotation weir.io/write: max is no quantity; write 10Mi, 10M or a number"},
		{"weir.io/write", "", "annotation weir.io/write: \"\" is no quantity; write 10Mi, 10M or a number"},
		{"weir.io/wirte", "1Mi", "annotation weir.io/wirte: weir has no such annotation; write weir.io/write"},
		{"weir.io/x", "1", "annotation weir.io/x: weir has no such annotation; write weir.io/plan or weir.io/on.VOLUME or weir.io/read or weir.io/write or weir.io/read-iops or weir.io/write-iops"},
		{"weir.io/on", "write=1", "annotation weir.io/on: weir has no such annotation; write weir.io/"},
		{"weir.io/", "", "annotation weir.io/: weir has no such annotation; write weir.io/"},
		{"weir.io/plan", "../x", "annotation weir.io/plan: ../x cannot be the name of a plan: it has at most 63 letters, digits, _ . and -"},
		{"weir.io/plan", long, "annotation weir.io/plan: " + long + " cannot be the name of a plan"},
		{"weir.io/plan", "a\x1b[2J", `annotation weir.io/plan: "a\x1b[2J" cannot be the name of a plan`},
		{"weir.io/plan.Web", "x", "annotation weir.io/plan.Web: Web cannot be the name of a container"},
		{"weir.io/plan.", "x", "annotation weir.io/plan.: \"\" cannot be the name of a container"},
		{"weir.io/read.-a", "1", "annotation weir.io/read.-a: -a cannot be the name of a container"},
		{"weir.io/read.../../x", "1", "annotation weir.io/read.../../x: ../../x cannot be the name of a container"},
		{"weir.io/on.../x", "write=1", "annotation weir.io/on.../x: ../x cannot be the name of a volume"},
		{"weir.io/on.", "write=1", "annotation weir.io/on.: \"\" cannot be the name of a volume"},
		{"weir.io/on.a", "", "annotation weir.io/on.a: it names no rate; write read=, write=, read-iops=, write-iops=, such as write=10Mi"},
		{"weir.io/on.a", "10Mi", "annotation weir.io/on.a: 10Mi is no rate; write read=, write=, read-iops=, write-iops= or path="},
		{"weir.io/on.a", "write=1 write=1", "annotation weir.io/on.a: write is given twice"},
		{"weir.io/on.a", "write=x", "annotation weir.io/on.a: write: x is no quantity"},
		{"weir.io/on.a", "path=/a path=/b write=1", "annotation weir.io/on.a: path is given twice"},
		{"weir.io/on.a", "path=/a/../b write=1", "annotation weir.io/on.a: path: /a/../b is no path in a container"},
		{"weir.io/on.a", "path=a write=1", "annotation weir.io/on.a: path: a is no path in a container"},
		{"weir.io/on.a", "path=/a\x07 write=1", `annotation weir.io/on.a: path: "/a\a" is no path in a container`},
		{"weir.io/on.rootfs", "path=/ write=1", "annotation weir.io/on.rootfs: rootfs has no path"},
		{"weir.io/read", strings.Repeat("1", 10<<20), "annotation weir.io/read: it has 10485760 bytes, and at most 4096 are possible"},
		{"weir.io/" + strings.Repeat("\x1b", 10<<20), "1", `annotation "weir.io/\x1b\x1b`},
		{"weir.io/on." + strings.Repeat("a.", 5<<20), "write=1", "annotation weir.io/on.a.a."},
	} {
		_, err := Parse(map[string]string{c.name: c.value})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || len(err.Error()) > 500 {
			t.Errorf("%.100q=%.100q: %.500v", c.name, c.value, err)
			continue
		}
		var refusal *Refusal
		if !errors.As(err, &refusal) || fault.ClassOf(err) != fault.WrongUse {
			t.Errorf("%.100q: %T", c.name, err)
		}
	}
	// What is wrong with one is told of the first in order, and nothing is taken.
	p, err := Parse(map[string]string{"weir.io/read": "1", "weir.io/write": "y", "weir.io/plan": "/"})
	if err == nil || !strings.HasPrefix(err.Error(), "annotation weir.io/plan: ") || !p.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	many := map[string]string{}
	for i := range manyMost + 1 {
		many[fmt.Sprintf("weir.io/plan.a%d", i)] = "x"
	}
	if _, err := Parse(many); err == nil || !strings.Contains(err.Error(), "the pod has 257 annotations that begin with weir.io/, and at most 256 are possible") {
		t.Error(err)
	}
	delete(many, "weir.io/plan.a0")
	if p, err := Parse(many); err != nil || len(p.Containers) != manyMost {
		t.Errorf("%d, %v", len(p.Containers), err)
	}
}

// FuzzParse: from any annotation comes limits that a kernel takes, or one line of bounded length.
func FuzzParse(f *testing.F) {
	for name, value := range maps.All(map[string]string{"plan": "a", "plan.web": "b", "read": "1Mi", "write-iops": "1e3", "on.a": "path=/x,read=1", "on.rootfs": "write=5", "read.../x": "\x1b[2J"}) {
		f.Add(name, value)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		p, err := Parse(map[string]string{Prefix + name: value, "other/" + name: value})
		if err != nil {
			if text := err.Error(); len(text) > 600 || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Errorf("%q", text)
			}
			return
		}
		limits := []limit.Limit{p.Limit}
		for _, on := range p.On {
			limits = append(limits, on.Limit)
			if strings.Contains(on.Volume, "..") || strings.Contains(on.Volume, "/") || strings.Contains(on.Path, "..") && strings.Contains("/"+on.Path+"/", "/../") {
				t.Errorf("%+v", on)
			}
		}
		for name, part := range p.Containers {
			limits = append(limits, part.Limit)
			if name == "" || strings.ContainsAny(name, "./\\") {
				t.Errorf("container %q", name)
			}
		}
		for _, l := range limits {
			for _, k := range limit.Keys {
				n, bound := l.Get(k).Number()
				if l.Get(k).IsSet() != bound || bound && (n == 0 || k.IsOps() && n > limit.MaxOpsPerSec || n > limit.MaxBytesPerSec) {
					t.Errorf("%q=%q: %v", name, value, l)
				}
			}
		}
	})
}
