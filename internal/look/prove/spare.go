package prove

import (
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
)

// spareMemory is how much memory a target needs beside a row: the load itself.
const spareMemory = 32 * mega

// fillsMemory reports that a row leaves dirty pages in the memory of its group.
func (t Test) fillsMemory() bool {
	return !t.Key.IsRead() && (t.Delayed() || t.Path == load.Mapped)
}

// Spare leaves out the writes into memory that could take a target down with the load. Where memory runs out, the kernel kills the load first; but the whole
// group with it where memory.oom.group says so (cgroup-v2.rst, "Memory Interface
// Files"), and systemd stops a service of which it has killed anything
// (systemd.service(5), OOMPolicy=).
func (p Place) Spare(tests []Test) (kept []Test, omitted []Omission, err error) {
	if !p.Stays() {
		return tests, nil, nil
	}
	for _, t := range tests {
		why := ""
		if t.fillsMemory() {
			if why, err = p.atRisk(t.Size); err != nil {
				return nil, nil, err
			}
		}
		if why != "" {
			omitted = append(omitted, Omission{t.Key, t.String(), why, fault.DropTarget})
			continue
		}
		kept = append(kept, t)
	}
	return kept, omitted, nil
}

// atRisk says why so many bytes of page cache might take the target down, from the
// group that the load is in up to the root; "" if nothing says so.
func (p Place) atRisk(size int64) (string, error) {
	for g := p.Inside; ; g = g.Parent() {
		why, err := p.atRiskIn(g, size)
		if why != "" || err != nil || g.IsRoot() {
			return why, err
		}
	}
}

func (p Place) atRiskIn(g cgroupfs.Group, size int64) (string, error) {
	whole, _, err := g.Text("memory.oom.group")
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(whole) == "1" {
		return g.Path() + " has memory.oom.group=1: if memory ran out, the kernel would kill the whole group, not only the load", nil
	}
	m, there, err := g.Memory()
	if err != nil || !there || m.Max == 0 {
		return "", err
	}
	bound := limit.FormatMeasured(float64(m.Max))
	if p.Unit != "" {
		return fmt.Sprintf("the memory of %s is limited (%s): if it ran out, systemd might stop %s (OOMPolicy=)", g.Path(), bound, p.Unit), nil
	}
	used, err := g.MemoryUsed()
	if err != nil {
		return "", err
	}
	if need := uint64(size) + spareMemory; m.Max < used+need {
		return fmt.Sprintf("%s uses %s of its %s of memory, and this row may need %s", g.Path(),
			limit.FormatMeasured(float64(used)), bound, limit.FormatMeasured(float64(need))), nil
	}
	return "", nil
}
