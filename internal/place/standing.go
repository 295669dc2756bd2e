package place

import (
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Standing makes the decision about the limits that a group has in force, as it is held now.
// chains are the relevant ways from mounts to devices, such as those of the group's processes:
// the file system of the first one on a device decides about its writeback, as for weir set and
// why.
//
// For another root, weir does not know whether the pacer runs on that host, so it says nothing
// about writes to other groups' files.
func (h Host) Standing(g cgroupfs.Group, rules []cgroupfs.Rule, chains []blkdev.Chain) (Decision, error) {
	var all []Placed
	for _, r := range rules {
		p := Placed{Device: blkdev.Device{Number: r.Device}, Limit: r.Limit}
		leads := func(c blkdev.Chain) bool {
			return slices.ContainsFunc(c.Devices, func(d blkdev.Device) bool { return d.Number == r.Device })
		}
		if i := slices.IndexFunc(chains, leads); i >= 0 {
			p.Chain = chains[i]
		}
		all = append(all, p)
	}
	d, err := h.DecideWith(g, rules, all, "")
	if h.Root != "/" {
		for i := range d.Places {
			d.Places[i].Foreign = nil
		}
	}
	return d, err
}

// Brief says in a few words which I/O under a rate is expected to be held: "all", "nothing", or
// what is not.
func (e Expected) Brief(k limit.Key) string {
	if k.IsRead() {
		return briefly([]told{{"", e.Read}}, k)
	}
	paths := []told{{"direct", e.Direct}, {"synchronous", e.Sync}, {"mapped", e.Mapped}, {"buffered", e.Buffered}}
	if e.Foreign != nil {
		paths = append(paths, told{"other groups' files", *e.Foreign})
	}
	return briefly(paths, k)
}

func briefly(paths []told, k limit.Key) string {
	var not, ahead []string
	for _, p := range paths {
		switch {
		case p.by.Mechanism == Nothing, p.by.Mechanism == Pacer && k.IsOps(): // the pacer counts bytes
			not = append(not, p.name)
		case p.by.Ahead:
			ahead = append(ahead, p.name)
		}
	}
	text := "all"
	switch {
	case len(not) == len(paths):
		return "nothing"
	case len(not) > 0:
		text = "not " + strings.Join(not, ", ")
	}
	if len(ahead) > 0 {
		text += "; " + strings.Join(ahead, ", ") + " at the disk only"
	}
	return text
}
