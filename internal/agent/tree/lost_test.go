package tree

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// The kernel keeps 16,384 events. What it drops is found, and counted.
func TestOverflow(t *testing.T) {
	lab.Unit(t)
	dir := inMemory(t)
	must(t, os.Mkdir(dir+"/old", 0o700), os.Mkdir(dir+"/same", 0o700))
	f := follow(t, dir, Options{})
	f.quiet()
	for range queueMost(t)/2 + 1 {
		must(t, os.Mkdir(dir+"/x", 0o700), os.Remove(dir+"/x"))
	}
	const lost = 100
	for i := range lost {
		must(t, os.MkdirAll(fmt.Sprintf("%s/new%d/below", dir, i), 0o700))
	}
	must(t, os.Remove(dir+"/old"), os.Remove(dir+"/same"), os.Mkdir(dir+"/same", 0o700), os.Mkdir(dir+"/same/below", 0o700))
	f.agrees()
	// 200 births, one end, and a group that is another one: one end and two births.
	if s := f.Stats(); s.Overflows != 1 || s.Missed != 2*lost+1+3 {
		t.Errorf("%+v", s)
	}
}

// queueMost is how many events the kernel keeps.
func queueMost(t *testing.T) (most int) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	if _, err := fmt.Sscan(string(text), &most); err != nil || most > 1<<17 {
		t.Fatalf("the kernel keeps %s events (%v)", text, err)
	}
	return most
}

// That writes were dropped is told at once, where no group was born and none has ended.
func TestLostWritesAreTold(t *testing.T) {
	lab.Unit(t)
	dir := inMemory(t)
	var files []*os.File
	for _, name := range []string{"a", "b"} {
		must(t, os.Mkdir(dir+"/"+name, 0o700))
		file, err := os.Create(dir + "/" + name + "/io.max")
		must(t, err)
		defer file.Close()
		files = append(files, file)
	}
	f := follow(t, dir, Options{Files: []string{"io.max"}})
	f.quiet()
	for i := range queueMost(t) + 1 { // two of one file in a row would be one event
		_, err := files[i%2].WriteString("x")
		must(t, err)
	}
	for told := false; !told; {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		events, err := f.Next(ctx)
		cancel()
		must(t, err)
		told = slices.ContainsFunc(events, isLost)
	}
	if s := f.Stats(); s.Overflows != 1 || s.Missed != 0 {
		t.Errorf("%+v", s)
	}
}

func isLost(e Event) bool { return e == Event{Kind: Lost, Path: "."} }

// Nobody tells who writes in a group without a watch, so each comparison says that somebody may have.
func TestWritesWithoutAWatchMayBeLost(t *testing.T) {
	lab.Unit(t)
	dir := inMemory(t)
	must(t, os.MkdirAll(dir+"/a", 0o700))
	f := follow(t, dir, Options{Files: []string{"io.max"}})
	f.quiet()
	for _, watched := range []bool{true, false, true} { // it has one again then
		if !watched {
			f.unwatch(f.top.below["a"])
		}
		events, err := f.Resync()
		if lost := slices.ContainsFunc(events, isLost); err != nil || lost == watched {
			t.Errorf("watched %v: %v, %v", watched, events, err)
		}
	}
}
