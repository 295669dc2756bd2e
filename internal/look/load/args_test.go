package load

import (
	"reflect"
	"testing"
	"time"
)

func TestArgsParse(t *testing.T) {
	for _, j := range []Job{
		{Path: Direct, File: "/a b/c=d", Block: 4096, Size: 1 << 30, Warm: 300 * time.Millisecond, For: 5 * time.Second},
		{Path: Sync, Read: true, File: "-", Block: 1, Size: 1, For: time.Nanosecond},
		{Path: Buffered, Dir: "/d", Block: 512, Size: 1024, Pace: 99, For: time.Second},
		{Path: Async, Random: true, Depth: 7, Dir: "/d", Block: 512, Size: 1024, For: time.Second},
		{Path: Mapped, Read: true, Alone: true, File: "fd:3", Block: 1, Size: 1},
		{Path: Buffered, Dir: "fd:3", Block: 1, Size: 1},
	} {
		if got, err := Parse(j.Args()); err != nil || !reflect.DeepEqual(got, j) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", j.Args(), got, err, j)
		}
	}
	for _, bad := range [][]string{
		nil,
		{"direct"},
		{"direct", "file=x"},
		{"direct", "write", "x"},
		{"direct", "write", "colour=red"},
		{"direct", "write", "random=perhaps"},
		{"direct", "write", "depth=x"},
		{"direct", "write", "block=1k"},
		{"direct", "write", "size=x"},
		{"direct", "write", "warm=1"},
		{"direct", "write", "for=x"},
	} {
		if j, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) = %+v", bad, j)
		}
	}
}
