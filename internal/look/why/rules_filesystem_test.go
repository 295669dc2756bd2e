package why

import (
	"slices"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// A neighbour waits where ext4 keeps data and journal in order, and a limit holds the data.
func TestJournalWaits(t *testing.T) {
	old := kernel.Release{Major: 5, Minor: 4, Text: "5.4"}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   bool
	}{
		"by default":                     {func(*Facts) {}, false},
		"dioread_lock":                   {func(f *Facts) { f.Places[0].FS.SuperOptions = "rw,dioread_lock" }, true},
		"dioread_lock, as it is printed": {func(f *Facts) { f.Places[0].FS.SuperOptions = "rw,nodioread_nolock" }, true},
		"nodelalloc":                     {func(f *Facts) { f.Places[0].FS.SuperOptions = "rw,nodelalloc" }, true},
		"an old kernel":                  {func(f *Facts) { f.Release = old }, true},
		"an old kernel, dioread_nolock":  {func(f *Facts) { f.Release, f.Places[0].FS.SuperOptions = old, "rw,dioread_nolock" }, false},
		"data=writeback":                 {func(f *Facts) { f.Places[0].FS.SuperOptions = "rw,nodelalloc,data=writeback" }, false},
		"data=journal":                   {func(f *Facts) { f.Places[0].FS.SuperOptions = "rw,nodelalloc,data=journal" }, false},
		"XFS":                            {func(f *Facts) { f.Places[0].FS.FSType, f.Release = "xfs", old }, false},
		"writeback is the root group's":  {func(f *Facts) { f.Release, f.Places[0].Writeback = old, false }, false},
		"a limit on reads alone":         {func(f *Facts) { f.Release = old; f.Places[0].Devices[0].Limit = limit.Limit{RBPS: limit.PerSecond(5)} }, false},
	} {
		f := good()
		c.change(&f)
		found := slices.ContainsFunc(Judge(f).Findings, func(one Finding) bool { return one.Code == "journal-waits" })
		if found != c.want {
			t.Errorf("%s: %v, want %v", name, found, c.want)
		}
	}
}
