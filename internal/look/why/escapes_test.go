package why

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
)

// What is written over files of other groups is held where weir's pacer counts it, and a
// finding breaks the limit only where nobody does.
func TestEscapes(t *testing.T) {
	at := func(rate uint64) *place.Paced {
		return &place.Paced{WBPS: rate, Devices: []blkdev.Number{vda.Number}, Record: "/run/weir"}
	}
	theirs, own := inode.Group{Path: "/y"}, inode.Group{Path: "/x"}
	untold := errors.New("no BPF")
	for _, c := range []struct {
		name      string
		change    func(*Facts)
		code      string
		severity  Severity
		held      Held            // of buffered writes
		mechanism place.Mechanism // of them
		says      string          // of the finding
	}{
		{"nobody, none open", func(*Facts) {}, "escapes-not-held", Note, AtDevice, place.Writeback, "nothing holds them here"},
		{"nobody", func(f *Facts) { f.Places[0].Files = owned(theirs) }, "foreign-inode", Breaks, No, "", "the limits of this group do not apply"},
		{"the pacer, none open", func(f *Facts) { f.Group.Escapes = at(10e6) }, "escapes-paced", Note, AtDevice, place.Writeback, "counts with BPF what escapes the limit"},
		{"the pacer", func(f *Facts) { f.Group.Escapes, f.Places[0].Files = at(10e6), owned(theirs) }, "foreign-inode", Note, Yes, place.Pacer, "counts with BPF what escapes the limit"},
		{"the pacer, own files too", func(f *Facts) { f.Group.Escapes, f.Places[0].Files = at(10e6), owned(own, theirs) }, "foreign-inode", Note, AtDevice, place.Writeback, "what escapes the limit"},
		{"the pacer for all", func(f *Facts) { f.Group.Paced, f.Places[0].Files = at(10e6), owned(theirs) }, "foreign-inode", Note, Yes, place.Pacer, "counts all buffered writes of the group"},
		{"the pacer cannot stop some", func(f *Facts) {
			f.Group.Escapes, f.Places[0].Files = at(10e6), owned(theirs)
			f.Group.Escapes.Missed = "process 7 cannot be paused"
		}, "foreign-inode", Note, Yes, place.Pacer, "But process 7 cannot be paused"},
		{"the pacer, and the rule is stricter", func(f *Facts) { f.Group.Escapes, f.Places[0].Files = at(20e6), owned(theirs) }, "foreign-inode", Breaks, No, "", "the limits of this group do not apply"},
		{"the pacer, and nobody knows whose a file is", func(f *Facts) {
			f.Group.Escapes, f.Places[0].File, f.Places[0].OwnersErr = at(10e6), "/data/f", untold
		}, "escapes-paced", Note, AtDevice, place.Writeback, "what escapes the limit"},
		{"nobody, and nobody knows", func(f *Facts) { f.Places[0].File, f.Places[0].OwnersErr = "/data/f", untold }, "inode-not-known", Note, Unknown, "", "weir cannot tell"},
		{"as weir run would", func(f *Facts) { f.Hold, f.Places[0].Files = limit.HoldAuto, owned(theirs) }, "foreign-inode", Note, Yes, place.Pacer, "weir's pacer would hold it"},
		{"as weir run would, without BPF", func(f *Facts) {
			f.Hold, f.Group.Unseen, f.Places[0].Files = limit.HoldAuto, untold, owned(theirs)
		}, "foreign-inode", Breaks, No, "", "the limits of this group do not apply"},
		{"by the kernel's rule alone", func(f *Facts) {
			f.Hold, f.Group.Escapes, f.Places[0].Files = limit.HoldKernel, at(10e6), owned(theirs)
		}, "foreign-inode", Breaks, No, "", "the limits of this group do not apply"},
		{"operations too", func(f *Facts) {
			f.Group.Escapes = at(10e6)
			f.Places[0].Devices[0].Limit = f.Places[0].Devices[0].Limit.With(limit.WIOPS, limit.PerSecond(200))
		}, "escapes-bytes-only", Note, AtDevice, place.Writeback, "counts bytes, not operations"},
	} {
		f := good()
		c.change(&f)
		r := Judge(f)
		found, ok := r.Find(c.code)
		if !ok || found.Severity != c.severity || !strings.Contains(found.Text, c.says) || len(found.Evidence) == 0 && c.code != "escapes-bytes-only" {
			t.Errorf("%s: %+v among %+v", c.name, found, r.Findings)
		}
		i := slices.IndexFunc(r.Matrix, func(c Cell) bool { return c.Path == load.Buffered && !c.Read })
		if got := r.Matrix[i]; got.Held != c.held || got.Mechanism != c.mechanism {
			t.Errorf("%s: a buffered write is %q by %q, want %q by %q", c.name, got.Held, got.Mechanism, c.held, c.mechanism)
		}
	}
}
