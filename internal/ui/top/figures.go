package top

import (
	"fmt"
	"math"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// unknown stands for what is not known, or not there.
const unknown = "–"

// Figures are what a line of the table says of a group, as text. Each view of groups shows these, so
// that all say the same.
type Figures struct {
	Read, Write       string // a second
	ReadOps, WriteOps string // operations a second
	Wait              string // the share of time in which tasks waited for I/O
	Dirty             string
	Held              string // what of the limits is expected to be held
}

// FiguresOf makes them.
func FiguresOf(g *watch.Group) Figures {
	f := Figures{Read: unknown, Write: unknown, ReadOps: unknown, WriteOps: unknown, Wait: waitText(g.Pressure), Dirty: dirtyText(g.Memory), Held: heldText(g)}
	if sum, known := g.Sum(); known {
		f.Read, f.Write = limit.FormatMeasured(sum.RBPS), limit.FormatMeasured(sum.WBPS)
		f.ReadOps, f.WriteOps = OpsText(sum.RIOPS), OpsText(sum.WIOPS)
	}
	return f
}

// KeyText names a rate: "read", "write", "read ops", "write ops".
func KeyText(k limit.Key) string {
	if k.IsOps() {
		return k.Direction() + " ops"
	}
	return k.Direction()
}

// PercentText is a whole percentage: "80 %".
func PercentText(p float64) string {
	if p > 9999 {
		return ">9999 %"
	}
	return fmt.Sprintf("%.0f %%", math.Floor(p+0.5))
}

// OpsText is a whole number of operations.
func OpsText(v float64) string { return cli.Count(uint64(v + 0.5)) }

func waitText(p *watch.Pressure) string {
	if p == nil || !p.Known {
		return unknown
	}
	return PercentText(p.Some)
}

func dirtyText(m *watch.Memory) string {
	if m == nil {
		return unknown
	}
	return limit.FormatMeasured(float64(m.Dirty))
}

// heldText says what of the group's limits is expected to be held: of the limit that holds least,
// and else of the nearest one.
func heldText(g *watch.Group) string {
	if !g.Limited() {
		return unknown
	}
	if g.Paced != nil && g.Paced.Lapsed != "" {
		return "pacer lapsed"
	}
	nearest, k, _, known := g.Nearest()
	text := ""
	if known && nearest.Expected != nil {
		text = nearest.Expected.Brief(k) + byText(nearest, k)
	}
	for _, d := range g.Devices {
		for _, k := range limit.Keys {
			if _, bound := d.Limit.Get(k).Number(); !bound || d.Expected == nil {
				continue
			}
			if _, all := d.Holders(k); !all {
				return k.Direction() + ": " + d.Expected.Brief(k)
			}
			if text == "" {
				text = d.Expected.Brief(k) + byText(d, k)
			}
		}
	}
	if text == "" {
		return "not known"
	}
	return text
}

// byText names who holds: " (kernel)", " (pacer)", " (kernel, pacer)".
func byText(d watch.Device, k limit.Key) string {
	by, _ := d.Holders(k)
	kernel, pacer := false, false
	for _, m := range by {
		pacer = pacer || m == "pacer"
		kernel = kernel || m != "pacer"
	}
	switch {
	case kernel && pacer:
		return " (kernel, pacer)"
	case kernel:
		return " (kernel)"
	case pacer:
		return " (pacer)"
	}
	return ""
}
