package trace

import (
	"fmt"
	"strings"
	"time"
)

// Advice is what a cause means here, and what to do.
type Advice struct {
	Code string // the part's name
	Text string
}

// adviseFrom is the least share of all time that a kind of operation must have for its causes
// to be explained.
const adviseFrom = 0.05

// Advise explains the causes of slow operations, from the evidence.
func (r *Report) Advise() []Advice {
	var total time.Duration
	for _, o := range r.Ops {
		total += o.Sum()
	}
	var advice []Advice
	said := map[Part]bool{}
	for _, o := range r.Ops {
		if float64(o.Sum()) < adviseFrom*float64(total) {
			continue
		}
		for _, c := range o.Verdict.Causes {
			explain := explanations[c.Part]
			if explain == nil {
				continue
			}
			text := o.words(c)
			if !said[c.Part] {
				text += ": " + explain(r)
			}
			said[c.Part] = true
			advice = append(advice, Advice{c.Part.String(), text})
		}
	}
	return advice
}

// words says which share of which time a cause has.
func (o *OpsReport) words(c Cause) string {
	of := "of their time"
	if !o.Verdict.All {
		of = "of the time above p50"
	}
	if o.Verdict.Partial {
		of += " in the calls that were fully traced"
	}
	return fmt.Sprintf("%ss: %.0f %% %s is %s", o.Kind, 100*c.Share, of, phrases[c.Part])
}

var phrases = [Parts]string{MemcgReclaim: "memcg reclaim", DirectReclaim: "direct reclaim", DirtyThrottle: "dirty throttling", BlkThrottle: "the wait for blk-throttle",
	Queue: "the block layer's queue", DeviceTime: "the device", Journal: "the journal and locks of the file system", Frozen: "being frozen",
	Uring: "waits within io_uring or libaio", OtherIO: "I/O that others submitted", RunQueue: "waiting for a processor", Other: "sleep for an unknown reason"}

var explanations = [Parts]func(*Report) string{
	MemcgReclaim: explainMemcg,
	DirectReclaim: func(*Report) string {
		return "the whole host is short of memory, so the kernel must free an old page for each new one"
	},
	DirtyThrottle: explainDirty,
	BlkThrottle:   explainThrottle,
	Queue: func(*Report) string {
		return "the device's queue is full, or its scheduler serves others first"
	},
	DeviceTime: func(*Report) string { return "the disk itself takes that long" },
	Journal: func(*Report) string {
		return "journal commits, including those that other processes on the same file system cause by fsync, and locks held during them; a file system of its own (weir volume create) separates the target from others"
	},
	Frozen: explainFrozen,
	Uring: func(*Report) string {
		return "a request waits for a worker, for requests that it is linked to, or for the program to take the result. One worker does all buffered writes to a file, one after the other"
	},
	OtherIO:  explainOthers,
	RunQueue: func(*Report) string { return "processors are busy, or the group has used up its CPU quota" },
	Other:    func(*Report) string { return "weir does not know where the kernel sleeps there" },
}

func explainMemcg(r *Report) string {
	m := r.Evidence.Memory
	if m == nil || m.full() < 0.9 {
		return "a memory limit of the group, or of a group above it, is reached now and then"
	}
	text := fmt.Sprintf("%s is at its memory limit (%s, of which %s is page cache), so the kernel must free an old page for each new one", m.Group, ofBinary(m.Used, m.bound()), memorySize(m.Cache))
	if r.Reclaim.MemcgBytes > 0 {
		text += fmt.Sprintf(". In these %.0f s the traced operations freed %s: a limit of at least %s would have been enough",
			r.Took.Seconds(), memorySize(r.Reclaim.MemcgBytes), memorySize(roundUp(m.Used+r.Reclaim.MemcgBytes)))
	}
	return text + ". Direct I/O needs no page cache"
}

// roundUp adds a tenth, and keeps two digits.
func roundUp(bytes uint64) uint64 {
	bytes += bytes / 10
	step := uint64(1 << 20)
	for step*100 < bytes {
		step *= 2
	}
	return (bytes + step - 1) / step * step
}

func explainDirty(r *Report) string {
	var text string
	d, m := r.Evidence.Dirty, r.Evidence.Memory
	switch {
	case m != nil && m.full() >= 0.9 && (d == nil || d.most < d.BackgroundAt):
		text = fmt.Sprintf("%s is at its memory limit (%s), of which only a part may be dirty (%s was): raise the memory limit, or use a faster disk", m.Group, ofBinary(m.Used, m.bound()), memorySize(m.Dirty))
	case d != nil && d.most < d.BackgroundAt:
		text = fmt.Sprintf("the host's thresholds were not reached (%s was dirty or in writeback, of %s): the disk (/sys/class/bdi) or the group's memory has a lower threshold",
			memorySize(d.most), memorySize(d.BackgroundAt))
	case d != nil:
		text = fmt.Sprintf("up to %s of the host's memory was dirty or in writeback; the kernel slows writers above %s and stops them at %s (vm.dirty_*). weir trace --dirty shows this over time",
			memorySize(d.most), memorySize((d.BackgroundAt+d.LimitAt)/2), memorySize(d.LimitAt))
	default:
		text = "programs write more than the disk can take"
	}
	if limits := r.writeLimits(); limits != "" && r.heldBehind() > 0 {
		text += ". The limit (" + limits + ") sets how fast the dirty data drains"
	}
	return text
}

// explainOthers says what is known of I/O that others have submitted: the kernel charges
// writeback to the writer's group, and the report lists it as background I/O.
func explainOthers(r *Report) string {
	const text = "writeback by the kernel's flushers, readahead of another process, or I/O that weir could not follow"
	if held := r.heldBehind(); held > 0.5 {
		return fmt.Sprintf("%s. Background writes spend %.0f %% of their time waiting for blk-throttle%s", text, 100*held, inBrackets(r.writeLimits()))
	}
	return text
}

// heldBehind is the share of the time of background writes that they wait for blk-throttle; 0
// if not known.
func (r *Report) heldBehind() float64 {
	for _, b := range r.Behind {
		if !b.Write || !b.ThrottleKnown {
			continue
		}
		if all := b.Throttle + b.Queue + b.Device; all > 0 {
			return float64(b.Throttle) / float64(all)
		}
	}
	return 0
}

// writeLimits returns the target's limits on writes.
func (r *Report) writeLimits() string {
	var writes []DeviceLimit
	for _, l := range r.Evidence.Limits {
		if l = l.writes(); l.Limit.Bounds() {
			writes = append(writes, l)
		}
	}
	return limitsText(writes)
}

func limitsText(limits []DeviceLimit) string {
	var all []string
	for _, l := range limits {
		all = append(all, l.String())
	}
	return strings.Join(all, "; ")
}

func explainThrottle(r *Report) string {
	if len(r.Evidence.Limits) == 0 {
		return "an I/O limit slows it"
	}
	return "its I/O limit slows it (" + limitsText(r.Evidence.Limits) + "); weir set changes the limit"
}

func explainFrozen(r *Report) string {
	if r.Evidence.Paced {
		return "weir's pacer pauses it to hold its writes at the limit" + inBrackets(r.writeLimits())
	}
	return "its cgroup is frozen, or it is stopped by a signal"
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// memorySize writes bytes in powers of 1024, as memory limits are written.
func memorySize(bytes uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, unit := float64(bytes), 0
	for v >= 1024 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 || v >= 100 {
		return fmt.Sprintf("%.0f %s", v, units[unit])
	}
	return fmt.Sprintf("%.3g %s", v, units[unit])
}

// ofBinary writes "63.9 of 64 MiB".
func ofBinary(part, whole uint64) string {
	return memorySize(part) + " of " + memorySize(whole)
}
