package stream

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/ui/top"
	"github.com/weir-io/weir/lab"
)

func viewOf(r Reading) top.View {
	return top.View{Snapshot: r.Snapshot, Plans: r.Plans, Told: r.Told, Source: top.Source(r.Source)}
}

// What weird says of all groups together is bounded, however many events it takes.
func TestAllIsBounded(t *testing.T) {
	lab.Unit(t)
	var s state
	head := `{"schema":"weir.top.event/1","cgroup_version":2,"more":true,"groups":[{"cgroup":"/%d","target":"%s"}]}`
	for i := 0; ; i++ {
		_, err := s.take(fmt.Appendf(nil, head, i, strings.Repeat("x", textMost/2)))
		if err != nil {
			break
		}
		if i > 2*allMost/textMost {
			t.Fatalf("%d bytes are kept", s.bytes)
		}
	}
}

// worst are events that are as large as one may be, and of which the most is made.
func worst() map[string]string {
	head := `{"schema":"weir.top.event/1","cgroup_version":2`
	fill := func(begin, one, end string) string {
		return begin + strings.Repeat(one, (eventMost-len(begin)-len(end)-1)/len(one)) + end
	}
	var groups, many strings.Builder
	for i := range groupsMost - 1 {
		fmt.Fprintf(&groups, `{"cgroup":"/%d","devices":[{}]},`, i)
	}
	for i := range entriesMost / withinMost {
		fmt.Fprintf(&many, `{"cgroup":"/%d","devices":[%s{}]},`, i, strings.Repeat("{},", withinMost-1))
	}
	return map[string]string{
		"disks":               fill(head+`,"disks":[`, "{},", "{}]}"),
		"below":               fill(head+`,"disks":[{"below":[`, `"8:1",`, `"8:0"]}]}`),
		"gone":                fill(head+`,"gone":[`, `"",`, `""]}`),
		"groups":              fill(head+`,"groups":[`, "{},", "{}]}"),
		"null groups":         fill(head+`,"groups":[`, "0,", "0]}"),
		"devices":             fill(head+`,"groups":[{"devices":[`, "{},", "{}]}]}"),
		"expected":            fill(head+`,"groups":[{"devices":[{"expected":[`, "{},", "{}]}]}]}"),
		"findings":            fill(head+`,"groups":[{"held":{"limits":[`, "{},", "{}]}}]}"),
		"fields":              fill(head, `,"x":1`, "}"),
		"lists":               fill(head+`,"groups":[`, `{"devices":[{"below":[]}]},`, "{}]}"),
		"texts":               fill(head+`,"groups":[`, `{"cgroup":"`+strings.Repeat("x", 60000)+`","target":"`+strings.Repeat(`\ufffd`, 10000)+`","target_base64":""},`, "{}]}"),
		"text":                fill(head+`,"unreadable":"`, "\xff", `"}`),
		"figure":              fill(head+`,"watched":`, "7", "}"),
		"as many as can be":   head + `,"disks":[` + strings.Repeat("{},", listMost-1) + `{}],"groups":[` + groups.String() + `{}]}`,
		"devices that can be": head + `,"groups":[` + many.String() + `{}]}`,
		"exact":               fill(head+`,"gone":["a"],"gone_base64":["/w=="]`, `,"x":1`, "}"),
	}
}

// One event, whatever is in it, takes some tens of megabytes.
func TestMemoryOfOneEvent(t *testing.T) {
	lab.Unit(t)
	const allocatedMost, keptMost = 96 << 20, 40 << 20
	for name, text := range worst() {
		if len(text) > eventMost {
			t.Fatalf("%s: %d bytes", name, len(text))
		}
		data := []byte(text)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var s state
		_, err := s.take(data)
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		runtime.KeepAlive(s)
		runtime.KeepAlive(data)
		t.Logf("%-20s %8d bytes: %4d MB allocated, %3d MB kept; %.80v", name, len(data), allocated>>20, kept>>20, err)
		if allocated > allocatedMost || kept > keptMost {
			t.Errorf("%s: %d MB are allocated, and %d MB kept", name, allocated>>20, kept>>20)
		}
	}
}

// Nor do many events.
func TestMemoryOfAllEvents(t *testing.T) {
	lab.Unit(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var s state
	for i := 0; ; i++ {
		_, err := s.take(fmt.Appendf(nil, `{"schema":"weir.top.event/1","cgroup_version":2,"more":true,"groups":[{"cgroup":"/%d","devices":[%s{}]}]}`, i, strings.Repeat("{},", withinMost-1)))
		if err != nil {
			break
		}
		if i > groupsMost {
			t.Fatal("any number of devices is kept")
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2*allMost {
		t.Errorf("%d MB are kept", kept>>20)
	}
	runtime.KeepAlive(s)
}

// FuzzEvents: whatever weird says, a reading is whole or an error, and can be shown.
func FuzzEvents(f *testing.F) {
	frames(1).Events(nil, func(text []byte) bool { f.Add(text); return true })
	text, err := json.Marshal(api.TopOf(frames(2).Snapshot, nil, weirds()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var s state
		done, err := s.take(text)
		if err != nil || !done {
			return
		}
		for _, width := range []int{0, 1, 60, 200} {
			top.Table(viewOf(s.view), top.Options{All: true}, width)
		}
		screen := top.Screen{Width: 80, Height: 24, Options: top.Options{All: true}}
		screen.Show(viewOf(s.view))
		screen.Press("enter")
		if screen.Text() == "" {
			t.Error("nothing is shown")
		}
	})
}
