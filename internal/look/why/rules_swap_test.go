package why

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// Memory of a limited group that is in swap on the limited disk waits for the limit, and so does
// whoever needs that memory.
func TestSwappedOut(t *testing.T) {
	old := kernel.Release{Major: 6, Minor: 11, Text: "6.11"}
	reads := limit.Limit{RBPS: limit.PerSecond(5e6)}
	for name, c := range map[string]struct {
		change func(*Facts)
		want   []string // words of the text; none: there is no such finding
	}{
		"writes":                   {func(f *Facts) { f.Release = old }, []string{"2.10 MB of the group's memory", "waits for the limit on writes", "in other groups too"}},
		"reads and writes":         {func(f *Facts) { f.Release, f.Places[0].Devices[0].Limit.RBPS = old, limit.PerSecond(5e6) }, []string{"limit on reads", "limit on writes", "in other groups too"}},
		"writes since 6.12":        {func(*Facts) {}, []string{"does not wait for the limit on writes", "the group's next writes wait"}},
		"both since 6.12":          {func(f *Facts) { f.Places[0].Devices[0].Limit.RBPS = limit.PerSecond(5e6) }, []string{"does not wait for the limit on writes", "limit on reads"}},
		"reads alone":              {func(f *Facts) { f.Places[0].Devices[0].Limit = reads }, []string{"limit on reads"}},
		"v1, writes":               {func(f *Facts) { f.Group.Swapped.MaxFile = "" }, nil},
		"v1, reads":                {func(f *Facts) { f.Group.Swapped.MaxFile, f.Places[0].Devices[0].Limit = "", reads }, []string{"limit on reads"}},
		"all disks of the target":  {func(f *Facts) { f.Places[0].Named = false }, []string{"limit on writes"}},
		"nothing of it is in swap": {func(f *Facts) { f.Group.Swapped.Bytes = 0 }, nil},
		"swap on another disk": {func(f *Facts) {
			f.Swaps[0].Devices = []blkdev.Device{{Node: "/dev/vdz", Number: blkdev.Number{Major: 254, Minor: 240}}}
		}, nil},
		"the limit is above the swap": {func(f *Facts) {
			f.Places[0].Devices[0].Device, f.Swaps[0].Devices = f.Swaps[0].Devices[0], []blkdev.Device{vda}
		}, nil},
		"no limit":   {func(f *Facts) { f.Places[0].Devices[0].Limit = limit.None }, nil},
		"operations": {func(f *Facts) { f.Places[0].Devices[0].Limit = limit.Limit{WIOPS: limit.PerSecond(50)} }, []string{"limit on writes"}},
	} {
		f := good()
		f.Swaps = []SwapArea{{"/dev/mapper/swap", []blkdev.Device{{Node: "/dev/dm-1", Number: blkdev.Number{Major: 253, Minor: 1}, Beneath: []blkdev.Device{vda}}}}}
		f.Group.Swapped = Swapped{2 << 20, "/sys/fs/cgroup/x/memory.swap.current", "/sys/fs/cgroup/x/memory.swap.max"}
		c.change(&f)
		found := swappedOut(f)
		if len(found) != min(len(c.want), 1) {
			t.Errorf("%s: %+v", name, found)
			continue
		}
		for _, words := range c.want {
			if !strings.Contains(found[0].Text, words) {
				t.Errorf("%s: %q lacks %q", name, found[0].Text, words)
			}
		}
		if writes := slices.ContainsFunc(c.want, func(w string) bool { return strings.Contains(w, "writes") }); len(found) > 0 && (found[0].Fixes[0].Lines != nil) != writes {
			t.Errorf("%s: %+v", name, found[0].Fixes)
		}
	}
}

// systemd writes memory.swap.max of its units.
func TestSwappedOutOfAUnit(t *testing.T) {
	f := good()
	f.Swaps = []SwapArea{{"/swap", []blkdev.Device{vda}}}
	f.Group.Swapped = Swapped{1, "memory.swap.current", "/sys/fs/cgroup/x/memory.swap.max"}
	if got := swappedOut(f)[0].Fixes[0].Lines[0]; got != "echo 0 > /sys/fs/cgroup/x/memory.swap.max" {
		t.Errorf("of a group: %q", got)
	}
	f.Group.Owner.Kind, f.Group.Unit = "systemd", &Unit{Name: "web.service"}
	if got := swappedOut(f)[0].Fixes[0].Lines[0]; got != "systemctl set-property web.service MemorySwapMax=0" {
		t.Errorf("of a unit: %q", got)
	}
}
