package mend

import (
	"errors"
	"os"
	"testing"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/targets"
)

func foreignTo(group, other string, files ...inode.File) why.Facts {
	facts := why.Facts{Group: why.Group{Path: group}, Places: []why.Place{{Writeback: true}}}
	for i, f := range files {
		f.Inode, f.Owner = uint64(i+1), inode.Owner{State: inode.Owned, IO: inode.Group{Path: other}}
		facts.Places[0].Files = append(facts.Places[0].Files, f)
	}
	return facts
}

// A file goes to the group of the process that has it open, if that is in the target's group or
// below, and else to the target's.
func TestJobsOf(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group("/batch")
	if err != nil {
		t.Fatal(err)
	}
	batch := targets.Target{Kind: "cgroup", Name: "/batch", Group: g}
	facts := foreignTo("/batch", "/other", inode.File{Path: "/a", PID: 4712}, inode.File{Path: "/b"}, inode.File{Path: "/c", PID: 4800}, inode.File{Path: "/d", PID: 99})
	jobs, err := JobsOf(h.FS, batch, facts)
	if err != nil || len(jobs) != 4 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	for i, want := range []string{"/batch/night", "/batch", "/batch", "/batch"} {
		if got := jobs[i].Into.Path(); got != want {
			t.Errorf("%s goes to %s, want %s", jobs[i].File.Path, got, want)
		}
	}
	// A group that gives controllers to others has no processes (v2): the helper starts below it.
	if err := os.WriteFile(h.Root+"/sys/fs/cgroup/batch/cgroup.procs", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	jobs, err = JobsOf(h.FS, batch, foreignTo("/batch", "/other", inode.File{Path: "/a"}))
	if err != nil || len(jobs) != 1 || jobs[0].Into.Path() != "/batch/night" {
		t.Errorf("without a process of its own: %+v, %v", jobs, err)
	}
	if jobs, err := JobsOf(h.FS, batch, foreignTo("/batch", "/batch/night", inode.File{Path: "/a"})); err != nil || len(jobs) > 0 {
		t.Errorf("own files: %+v, %v", jobs, err)
	}
}

func TestJobsRefused(t *testing.T) {
	h := hosttest.Open(t, "v2", nil, host.Options{})
	batch := targets.Target{Kind: "cgroup", Name: "/batch"}
	var unkept *fault.Remedied
	if _, err := JobsOf(h.FS, batch, why.Facts{Places: []why.Place{{}}}); !errors.As(err, &unkept) || unkept.Remedy != (fault.Remedy{Do: fault.TellWhy, Target: "cgroup:/batch"}) || fault.ClassOf(err) != fault.NotPossible {
		t.Errorf("where all writeback is the root group's: %v", err)
	}
	cannot := errors.New("no BPF")
	if _, err := JobsOf(h.FS, batch, why.Facts{Places: []why.Place{{Writeback: true, OwnersErr: cannot}}}); !errors.Is(err, cannot) {
		t.Errorf("where owners are not known: %v", err)
	}
}
