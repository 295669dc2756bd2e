package bootline

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab/environ"
)

func TestRoundTrip(t *testing.T) {
	want := Line{
		Guest: "uml-6.1-v2-cgroup2", Lane: "uml", Mode: environ.V2, IOMount: "/cgroup2",
		Run: `^Test Hold "$/10MB=s`, Short: true, Timeout: 90 * time.Second, Slow: 1.25, Piece: 512300 * time.Nanosecond,
		Only:  []string{"bpf", "systemd"},
		Disks: []string{"job", "out", "ext4-0"},
	}
	got, err := Parse("quiet panic=-1 " + strings.Join(want.Words(), " ") + " root=98:0\n")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{"weir.nonsense=1", "weir.guest", "weir.timeout=x", "weir.slow=x", "weir.run=!!"} {
		if l, err := Parse(in); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, l)
		}
	}
}
