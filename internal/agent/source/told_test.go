package source

import (
	"context"
	"testing"

	"github.com/weir-io/weir/internal/agent/tree"
)

// The targets of a group are told of its birth after it has its rules; of an end at once. With too many
// births at once nothing waits.
func TestBirthsAreTold(t *testing.T) {
	b, k, _, told := newBirths(t, config)
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	tr := &Tree{Options: k.options, Births: b, Changed: func(string, string) { direct++ }}
	event := tree.Event{Kind: tree.Born, Path: "docker/" + webID}
	tr.tell(io, []tree.Event{event}, false)
	if direct != 0 {
		t.Error("told before its rules")
	}
	// What is written meanwhile is looked at after that; whoever it was, the targets are told then.
	written := 0
	tr.Written = func(string, string, string) { written++ }
	rule := tree.Event{Kind: tree.Written, Path: event.Path, File: "io.max"}
	if tr.tell(io, []tree.Event{rule}, false); written != 0 || direct != 0 {
		t.Errorf("%d and %d told of a newborn group's rules", written, direct)
	}
	b.tell(<-b.born)
	if one := <-told; one != "docker:"+webID[:12] {
		t.Error(one)
	}
	if tr.tell(io, []tree.Event{rule}, false); written != 1 || direct != 0 || len(b.new) != 0 {
		t.Errorf("%d and %d told of written rules; %v", written, direct, b.new)
	}
	tr.tell(io, []tree.Event{event}, false)
	tr.tell(io, []tree.Event{{Kind: tree.Born, Path: "user.slice/user-1000.slice/user@1000.service/x"}}, false)
	if direct != 1 || len(b.born) != 1 {
		t.Errorf("%d told at once, and %d wait", direct, len(b.born))
	}
	direct = 0
	for len(b.born) < cap(b.born) {
		b.born <- birth{}
	}
	tr.tell(io, []tree.Event{event, {Kind: tree.Written, Path: event.Path}}, false) // of what is written the birth tells that waits
	if direct != 1 {
		t.Errorf("%d told at once, want 1", direct)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { b.Run(ctx); close(done) }()
	if got := <-told; got != "docker:"+webID[:12] {
		t.Error(got)
	}
	stop()
	<-done
}
