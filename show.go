package weir

import (
	"context"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limiting"
)

// Limited is a group with its limits, and what is known of them.
type Limited struct {
	Target string // as a user spells it
	Group
	Processes int      // in the group and below
	Devices   []Device // those that have a limit

	// PacedWBPS is what the pacer holds of the group's buffered writes, and EscapesWBPS what it
	// holds of writes that the kernel charges to other groups, in bytes per second; 0: nothing.
	PacedWBPS, EscapesWBPS uint64
	PacedLapsed            string // why the pacer holds nothing, though it was asked to; empty: it does, or was not
	PacedMissed            string // which processes it cannot pause, and why; empty: none

	// Recorded is what the owner stores for the target's next start. nil: that is not known.
	Recorded []Recorded
	// Kept is what weir has on record for the target's next start.
	Kept []Kept
}

// A Recorded is a limit that the owner of a target stores.
type Recorded struct {
	Device string // as the owner spells it
	Number string // "254:16"; empty: it is not known which device that is
	Rates  Rates
}

// A Kept is a limit on weir's record.
type Kept struct {
	Limit
	Hold Hold
}

// Show reads the limits of a target. If window is not 0, it measures for so long what the target
// reads and writes under them.
//
// ErrNotFound: there is no such target. ErrNotPossible: the host has no controller of disk I/O.
// ErrWrongUse: nothing can have that name, or the window is negative.
func (h *Host) Show(ctx context.Context, target string, window time.Duration) (Limited, error) {
	if window < 0 {
		return Limited{}, told(negative(window), nil)
	}
	shown, err := limiting.Manager{Host: h.host}.Show(ctx, target, window)
	if err != nil {
		return Limited{}, told(err, nil)
	}
	return limitedOf(shown.Groups[0]), nil
}

// ShowAll reads the limits of all groups that have any, whoever set them. Its errors are those of
// Show.
func (h *Host) ShowAll(ctx context.Context, window time.Duration) ([]Limited, error) {
	if window < 0 {
		return nil, told(negative(window), nil)
	}
	shown, err := limiting.Manager{Host: h.host}.ShowAll(ctx, window)
	if err != nil {
		return nil, told(err, nil)
	}
	var all []Limited
	for _, g := range shown.Groups {
		all = append(all, limitedOf(g))
	}
	return all, nil
}

func negative(window time.Duration) error {
	return fault.Misusef("measure for %s: a time cannot be negative", window)
}

func limitedOf(g limiting.Group) Limited {
	l := Limited{Target: g.Target, Group: Group{g.Path, int(g.Version), Owner{g.Owner.Kind, g.Owner.Name}}, Processes: g.Processes,
		PacedWBPS: g.Paced, EscapesWBPS: g.Escapes, PacedLapsed: g.Lapsed, PacedMissed: g.Missed}
	for _, d := range g.Devices {
		one := Device{Node: d.Node, Number: d.Number.String(), Limit: ratesOf(d.Limit), Volume: d.Volume}
		if d.Expected != nil {
			one.expect(*d.Expected)
		}
		if d.Rates != nil {
			measured := Measured(*d.Rates)
			one.Rates = &measured
		}
		l.Devices = append(l.Devices, one)
	}
	if g.Record != nil {
		l.Recorded = []Recorded{}
		for _, r := range g.Record.Limits {
			one := Recorded{Device: r.Path, Rates: ratesOf(r.Limit)}
			if r.Err == nil {
				one.Number = r.Device.String()
			}
			l.Recorded = append(l.Recorded, one)
		}
	}
	for _, k := range g.Kept {
		one := Kept{Limit{k.On, ratesOf(k.Limit)}, Hold(k.Hold)}
		if one.Hold == "" {
			one.Hold = HoldAuto
		}
		l.Kept = append(l.Kept, one)
	}
	return l
}
