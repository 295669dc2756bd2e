package stream

import (
	"encoding/json"
	"fmt"
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
		_, err := s.take(fmt.Appendf(nil, head, i, strings.Repeat("x", groupMost/2)))
		if err != nil {
			break
		}
		if i > 2*allMost/groupMost {
			t.Fatalf("%d bytes are kept", s.bytes)
		}
	}
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
