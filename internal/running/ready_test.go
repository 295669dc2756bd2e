package running

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/act/pacer/pacertest"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/lab"
)

// makeFiles makes the files of new groups, as the kernel does: one that is written, and those of
// limits.
func makeFiles(root, file string) error {
	files := []string{file}
	groups, err := filepath.Glob(filepath.Join(root, "sys/fs/cgroup/blkio/weir-*"))
	for _, g := range groups {
		for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files = append(files, filepath.Join(g, "blkio.throttle."+rate+"_device"))
		}
	}
	unified, globErr := filepath.Glob(filepath.Join(root, "sys/fs/cgroup/weir-*"))
	for _, g := range unified {
		files = append(files, filepath.Join(g, "io.max"))
	}
	err = errors.Join(err, globErr)
	for _, f := range files {
		if _, missing := os.Stat(f); errors.Is(missing, fs.ErrNotExist) {
			err = errors.Join(err, os.WriteFile(f, nil, 0o600))
		}
	}
	return err
}

// What Steps lists is what Ready does, in the same order: here a stand-in for the kernel takes it.
func TestReadyDoesTheSteps(t *testing.T) {
	lab.Unit(t)
	for _, name := range []string{"v1", "v2"} {
		h := hosttest.Open(t, name, nil, host.Options{})
		kernel := hosttest.Rehearse(t, h)
		kernel.Refuse = func(file, _ string) error { return makeFiles(h.Root, file) }
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Memory: 64 << 20, Name: "job",
			Asked: []limit.Asked{{On: "254:0", Limit: write.With(limit.RIOPS, limit.PerSecond(7))}, {On: "254:16", Limit: write}}})
		if err != nil {
			t.Fatal(err)
		}
		steps, err := r.Steps()
		if err != nil {
			t.Fatal(err)
		}
		notes, err := r.Ready(t.Context())
		if err != nil || len(notes) > 0 {
			t.Fatalf("%s: %v, %v", name, notes, err)
		}
		var did []string
		for _, w := range kernel.Writes {
			did = append(did, w.File+" "+w.Line)
		}
		var said []string
		for _, s := range steps {
			if s.Mkdir == "" {
				said = append(said, s.File+" "+s.Line)
			} else if _, err := os.Stat(s.Mkdir); err != nil {
				t.Errorf("%s: a group that was not made: %v", name, err)
			}
		}
		if len(said) < 3 || !slices.Equal(said, did) {
			t.Errorf("%s: it says\n%q\nand does\n%q", name, said, did)
		}
		if got := r.room.IO.Path(); got != "/weir-job" {
			t.Errorf("%s: the group is %s", name, got)
		}
	}
}

// If the pacer cannot be had for what escapes, the decision no longer says that it holds that.
func TestReadyWithoutThePacer(t *testing.T) {
	lab.Unit(t)
	h := hosttest.Open(t, "v2", nil, host.Options{})
	kernel := hosttest.Rehearse(t, h)
	kernel.Refuse = func(file, _ string) error { return makeFiles(h.Root, file) }
	p := pacertest.Serve(t, h.State)
	r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Name: "job", Memory: 64 << 20, Asked: []limit.Asked{{On: "254:0", Limit: write}}})
	if err != nil {
		t.Fatal(err)
	}
	withPacer(t, r, limit.HoldAuto)
	if by := r.Decided.Places[0].Foreign; r.Decided.Escapes == nil || by == nil || by.Mechanism != place.Pacer {
		t.Fatalf("%+v, %+v", r.Decided, by)
	}
	p.Refuse("not now")
	if notes, err := r.Ready(t.Context()); err != nil || len(notes) != 1 || notes[0].Code != "no-pacer" {
		t.Errorf("%v, %v", notes, err)
	}
	if by := r.Decided.Places[0].Foreign; r.Decided.Escapes != nil || by == nil || by.Mechanism == place.Pacer || by.Why == "" {
		t.Errorf("%+v: writes to others' files are held by %+v", r.Decided, by)
	}
}

// If the pacer cannot be had that was to hold the command as it holds the outer group, weir says so and
// goes on: nobody has asked for it.
func TestReadyWithoutTheOuterPacer(t *testing.T) {
	lab.Unit(t)
	for _, kept := range []bool{true, false} {
		h := hosttest.Open(t, "v2", nil, host.Options{})
		kernel := hosttest.Rehearse(t, h)
		kernel.Refuse = func(file, _ string) error { return makeFiles(h.Root, file) }
		p := pacertest.Serve(t, h.State)
		r, err := Prepare(t.Context(), h, Request{Command: []string{"true"}, Name: "job", Memory: 64 << 20, Asked: []limit.Asked{{On: "254:0", Limit: write}}})
		if err != nil {
			t.Fatal(err)
		}
		withPacer(t, r, limit.HoldPacer)
		if r.kept = kept; r.Decided.Paced == nil {
			t.Fatalf("%+v", r.Decided)
		}
		p.Refuse("not now")
		notes, err := r.Ready(t.Context())
		if told := len(notes) == 1 && notes[0].Code == "no-pacer"; told != kept || (err == nil) != kept || (r.Decided.Paced == nil) != kept {
			t.Errorf("kept: %v: %v, %v, %+v", kept, notes, err, r.Decided.Paced)
		}
	}
}
