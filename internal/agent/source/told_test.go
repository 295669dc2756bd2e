package source

import (
	"testing"

	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/targets"
)

// The targets of a group are told of its birth after it has its rules, and these are on record; of an end soon. Nothing
// waits for that.
func TestBirthsAreTold(t *testing.T) {
	b, k, kernel, told := newBirths(t, config)
	b.Learn("docker", true, targets.Listed{Kind: "docker", Name: "web", Names: []string{"web"}, ID: webID})
	io, err := k.host.IO()
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	tr := &Tree{Options: k.options, Births: b, Changed: func(string, string) { direct++ }}
	event := tree.Event{Kind: tree.Born, Path: "docker/" + webID}
	if tr.tell(io, []tree.Event{event}, false); direct != 0 || len(kernel.Writes) != 0 {
		t.Errorf("%d told directly; without a host %v is written", direct, kernel.Writes)
	}
	if one := <-told; one != "docker:"+webID[:12] || len(b.new) != 0 {
		t.Errorf("%s, %v", one, b.new)
	}
	b.exchange(k.host)
	if tr.tell(io, []tree.Event{event}, false); direct != 0 || len(told) != 0 || len(kernel.Writes) == 0 {
		t.Errorf("%d told directly, %d by births, written is %v", direct, len(told), kernel.Writes)
	}
	// What is written meanwhile is looked at after that; whoever it was, the targets are told then.
	written := 0
	tr.Written = func(string, string, string) { written++ }
	rule := tree.Event{Kind: tree.Written, Path: event.Path, File: "io.max"}
	if tr.tell(io, []tree.Event{rule}, false); written != 0 || direct != 0 {
		t.Errorf("%d and %d told of a newborn group's rules", written, direct)
	}
	one := <-b.begun
	if err := one.Record(); err != nil {
		t.Fatal(err)
	}
	b.tell(one.of)
	if one := <-told; one != "docker:"+webID[:12] {
		t.Error(one)
	}
	if tr.tell(io, []tree.Event{rule}, false); written != 1 || direct != 0 || len(b.new) != 0 {
		t.Errorf("%d and %d told of written rules; %v", written, direct, b.new)
	}
	// A container whose rules the runtime has waited for is in no hurry, nor is one for which it is going to ask.
	var soon []string
	b.Soon = func(kind, name string) { soon = append(soon, kind+":"+name) }
	b.Options.Asked = func() bool { return true }
	all := []named{{"pod", "u1"}, {"containerd", "c1"}, {"unit", "a.scope"}}
	if b.tell(birth{"/x", all}); len(told) != 1 || len(soon) != 2 {
		t.Errorf("%d told, soon %v", len(told), soon)
	}
	<-told
	b.Options.Asked = nil
	if b.tell(birth{"/x", all}); len(told) != 3 || len(soon) != 2 {
		t.Errorf("%d told, soon %v", len(told), soon)
	}
	for range all {
		<-told
	}
	if b.tell(birth{names: all}); len(told) != 0 || len(soon) != 5 {
		t.Errorf("%d told, soon %v", len(told), soon)
	}
	if tr.tell(io, []tree.Event{{Kind: tree.Born, Path: "user.slice/user-1000.slice/user@1000.service/x"}}, false); direct != 1 {
		t.Errorf("%d told at once", direct)
	}
}
