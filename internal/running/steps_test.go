package running

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/pacer/pacertest"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/daemon/systemd/systemdtest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/lab"
)

// with adds a file to a copy of a machine.
func with(root, file, text string) error {
	file = filepath.Join(root, file)
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644))
}

// hierarchies are the mounts of cgroups and the groups of processes that a copy has in the place of
// its own.
func hierarchies(mounts, groups string) map[string]string {
	const disks = "21 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n26 21 254:16 / /data rw,relatime - xfs /dev/vdb rw,inode64\n"
	files := map[string]string{"proc/1/mountinfo": disks + mounts, "sys/fs/cgroup/freezer/cgroup.procs": ""}
	for _, pid := range []string{"1", "self", fmt.Sprint(os.Getpid())} {
		files["proc/"+pid+"/cgroup"] = groups
	}
	return files
}

const (
	blkio    = "27 21 0:27 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
	memory   = "28 21 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
	freezer  = "29 21 0:29 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
	unified  = "30 21 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	onlyV2   = "24 21 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	inSlices = "3:freezer:/\n2:memory:/a.slice\n1:blkio:/a.slice\n"
)

// makeScope makes the groups of a scope, as systemd does.
func makeScope(root, name, unit string, pid int) error {
	if pid == 0 {
		return nil // a slice
	}
	in := "/system.slice/" + unit
	if name == "v1" {
		in = "/a.slice/" + unit
	}
	dir := map[string]string{"v1": "sys/fs/cgroup/blkio", "hybrid": "sys/fs/cgroup/blkio", "v2": "sys/fs/cgroup"}[name] + in
	groups := map[string]string{"v1": strings.ReplaceAll(inSlices, "/a.slice", in), "v2": "0::" + in + "\n", "hybrid": "3:freezer:/\n1:blkio:" + in + "\n0::" + in + "\n"}[name]
	err := with(root, fmt.Sprintf("proc/%d/cgroup", pid), groups)
	files := []string{"cgroup.procs", "io.max"}
	if name != "v2" {
		files = []string{"cgroup.procs"}
		for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files = append(files, "blkio.throttle."+rate+"_device")
		}
	}
	for _, file := range files {
		err = errors.Join(err, with(root, filepath.Join(dir, file), ""))
	}
	if name == "hybrid" {
		err = errors.Join(err, with(root, "sys/fs/cgroup/unified"+in+"/memory.max", "max\n"))
	}
	return err
}

// What Steps lists is what Ready has systemd do where systemd makes the group, what it writes
// beside that, and what it asks the pacer for.
func TestReadyDoesTheStepsOfAScope(t *testing.T) {
	lab.Unit(t)
	for _, c := range []struct {
		name  string
		how   limit.Hold
		files map[string]string
		lines int
	}{
		{"v1", limit.HoldKernel, hierarchies(blkio+memory+freezer, inSlices), 6},
		{"v1", limit.HoldAuto, hierarchies(blkio+memory+freezer, inSlices), 8},
		{"hybrid", limit.HoldKernel, hierarchies(blkio+freezer+unified, "3:freezer:/\n1:blkio:/\n0::/\n"), 9},
		{"v2", limit.HoldKernel, hierarchies(onlyV2, "0::/\n"), 5},
		{"v2", limit.HoldAuto, hierarchies(onlyV2, "0::/\n"), 6},
		{"v2", limit.HoldPacer, hierarchies(onlyV2, "0::/\n"), 7},
	} {
		files := maps.Clone(c.files)
		files["run/systemd/system/x"] = ""
		machine := c.name
		if c.name == "hybrid" {
			machine = "v1"
			maps.Copy(files, map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": "memory\n", "sys/fs/cgroup/unified/cgroup.subtree_control": "",
				"sys/fs/cgroup/unified/system.slice/cgroup.subtree_control": "", "sys/fs/cgroup/unified/system.slice/cgroup.controllers": ""})
		}
		if c.name == "v1" {
			files["sys/fs/cgroup/blkio/a.slice/cgroup.procs"] = ""
		}
		var s *systemdtest.Systemd
		h := hosttest.Open(t, machine, files, host.Options{Systemd: func(ctx context.Context) (*systemd.Conn, error) { return s.Dial(t)(ctx) }})
		s = systemdtest.New(h.Root)
		s.Started = func(unit string, pid int) error { return makeScope(h.Root, c.name, unit, pid) }
		s.Rules = func(unit, property, device, rate string) error {
			key := map[string]string{"IOWriteBandwidthMax": "wbps", "IOReadIOPSMax": "riops"}[property]
			return hosttest.Take(filepath.Join(h.Root, "sys/fs/cgroup/system.slice", unit, "io.max"), device+" "+key+"="+rate)
		}
		kernel, p := hosttest.Rehearse(t, h), pacertest.Serve(t, h.State)
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Memory: 64 << 20, Name: "job", Hold: c.how,
			Asked: []limit.Asked{{On: "254:0", Limit: write.With(limit.RIOPS, limit.PerSecond(7))}}})
		if c.how == limit.HoldPacer { // which a copy has not
			err = nil
		}
		if err != nil {
			t.Fatalf("%s, %s: %v", c.name, c.how, err)
		}
		withPacer(t, r, c.how)
		steps, err := r.Steps()
		if err != nil {
			t.Fatalf("%s, %s: %v", c.name, c.how, err)
		}
		if early := s.Asked(); early != nil || kernel.Writes != nil {
			t.Errorf("%s, %s: a dry run did %+v, %+v", c.name, c.how, early, kernel.Writes)
		}
		if notes, err := r.Ready(t.Context()); err != nil || len(notes) > 0 {
			t.Fatalf("%s, %s: %v, %v", c.name, c.how, notes, err)
		}
		var did []string
		for _, a := range s.Asked() {
			// How a unit is made is no step: its processes, its description, where it is and how it ends.
			if name, _, _ := strings.Cut(a.Property, "="); !a.New || !slices.Contains([]string{"Description", "PIDs", "CollectMode", "OOMPolicy", "Slice"}, name) {
				did = append(did, a.Unit+": "+a.Property)
			}
		}
		for _, w := range kernel.Writes {
			did = append(did, w.File+" "+w.Line)
		}
		asked, cells := p.Asked()
		for _, cell := range cells {
			did = append(did, "make the cell "+filepath.Base(cell))
		}
		for _, a := range asked {
			did = append(did, fmt.Sprintf("pace %+v", a))
		}
		var said []string
		for _, step := range steps {
			switch {
			case step.Unit != "":
				said = append(said, step.Unit+": "+step.Property)
			case step.Mkdir != "":
				said = append(said, "make the cell "+filepath.Base(step.Mkdir))
			case step.Pace != nil:
				said = append(said, fmt.Sprintf("pace %+v", *step.Pace))
			default:
				said = append(said, step.File+" "+step.Line)
			}
		}
		if !slices.Equal(said, did) || len(did) != c.lines {
			t.Errorf("%s, %s: it says\n%s\nand does\n%s", c.name, c.how, strings.Join(said, "\n"), strings.Join(did, "\n"))
		}
		if _, err := r.room.Close(); err != nil {
			t.Errorf("%s, %s: %v", c.name, c.how, err)
		}
	}
}

// withPacer decides as a host with a pacer and BPF does: a copy has neither.
func withPacer(t *testing.T, r *Run, how limit.Hold) {
	t.Helper()
	facts := r.Decided.Group
	facts.NoPacer, facts.Unseen = nil, nil
	places, _, err := place.Place(t.Context(), r.host.Devices(), r.request.Asked, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if r.Decided, err = place.Decide(facts, places, how); err != nil {
		t.Fatal(err)
	}
}
