package prove

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// rowOf turns a run into a row.
func rowOf(place Place, r *run) Row {
	row := Row{Test: r.test, Name: r.test.String(), Device: place.Device,
		P50: r.result.P50, P99: r.result.P99, Max: r.result.Max}
	if !r.measured() {
		row.Judgement = Judgement{Verdict: CannotTell, Reason: Failed}
		row.Why = r.whyNot(&row)
		return row.explained(place, r)
	}
	e := r.evidence(place)
	row.Judgement = Judge(e)
	if r.hung && row.Verdict == CannotTell && row.Reason != Busy {
		row.Why = r.whyNot(&row)
		return row.explained(place, r)
	}
	if r.observed && (row.Reason == Busy && row.Done <= row.Most || row.Reason == Unwritten) {
		row.Reason = Slow // nobody knows what the target would have done, or on which disk
	}
	if asked := r.asked.Between(e.From, e.To); row.Reason == Slow && !r.test.Key.IsOps() && asked > 2*row.Most {
		row.Reason = Cache
	}
	if row.Reason == Slow && r.samples.Gone != 0 {
		row.Reason = Disturbed
	}
	row.Window = e.To - e.From
	row.Writer, row.Cgroup, row.Disk = seen(e.Writer, e.From, e.To), seen(e.Cgroup, e.From, e.To), seen(e.Device, e.From, e.To)
	row.Others, row.Ops = e.Others, e.Ops
	row.Trace = Trace{Writer: since(e.Writer, r.began).Rates(), Cgroup: since(e.Cgroup, r.began).Rates(), Device: since(e.Device, r.began).Rates(),
		From: e.From - r.began, To: e.To - r.began}
	if r.test.Delayed() {
		row.Dirty = r.dirty(e)
		row.Drain = time.Duration(float64(row.Dirty) / e.Limit * float64(time.Second))
	}
	row.Why = row.why(r, e)
	row.warn(e, r)
	return row.explained(place, r)
}

// explained adds the findings of weir why.
func (row Row) explained(place Place, r *run) Row {
	findings, warning := place.Explained.explain(row, r.observed)
	row.Findings = findings
	if warning != "" {
		row.Warning = append(row.Warning, warning)
	}
	return row
}

// measured reports whether there is a window to judge.
func (r *run) measured() bool {
	return r.failed == nil && r.samples != nil && r.result.Ended > r.result.Began
}

// whyNot says what became of a load without a result.
func (r *run) whyNot(row *Row) string {
	switch {
	case r.hung:
		row.Reason = Hung
		return r.hanging()
	case r.signal == int(unix.SIGKILL) && r.oomKills > 0:
		row.Reason = Killed
		return "the load was OOM-killed (oom_kill in memory.events): dirty pages count as the group's memory, and the limit keeps them from being written in time"
	case r.signal == int(unix.SIGKILL):
		row.Reason = Killed
		return "the load was killed by SIGKILL, not by weir; see the kernel's log for an OOM kill"
	case r.signal != 0:
		row.Reason = Killed
		return "the load was ended by signal " + unix.SignalName(unix.Signal(r.signal))
	case r.failed != nil:
		return r.failed.Error()
	}
	return "the load counted nothing"
}

// hanging says what became of a load that did not end.
func (r *run) hanging() string {
	return fmt.Sprintf("the load did not end in %s, so weir killed it; it had written %s so far",
		r.test.Warm+r.test.For+grace, limit.FormatMeasured(r.writer.Bytes.At(r.ended)))
}

// pacedRequest is what may pass at once where the pacer lets processes go on, in bytes.
const pacedRequest = 2 << 20

func (r *run) evidence(place Place) Evidence {
	k := r.test.Key
	e := Evidence{
		Limit: float64(r.test.Rate), Began: r.began, From: time.Duration(r.result.Began), To: time.Duration(r.result.Ended),
		Writer: r.writer.of(k), Cgroup: r.samples.Cgroup.of(k), Device: r.samples.Device.of(k), Writes: !k.IsRead(), Delayed: r.delayed(), Request: 1,
		Queued: r.group.Hierarchy().Version == cgroupfs.V1,
	}
	if e.Delayed && place.Paced && !k.IsOps() { // what is made dirty is what is held, and goes to the disk later
		e.Cgroup, e.Device, e.Delayed = e.Writer, e.Writer, false
		e.Request = pacedRequest
	}
	rooted := e.Delayed && place.Rooted
	if rooted { // whoever's it is, the limit binds it
		e.Cgroup, e.Queued = e.Device, false
	}
	// The samples end a little before or after the load's own window.
	if n := len(e.Device); n > 0 {
		e.To = min(e.To, e.Device[n-1].At)
	}
	window := (e.To - e.From).Seconds()
	r.requests(&e)
	e.Waiting = e.Request
	if e.Queued && r.test.Depth > 1 {
		if e.Alone = !place.Stays(); !e.Alone {
			e.Request += r.test.underWay()
		}
	}
	if e.Delayed && !k.IsOps() {
		e.Request = max(e.Request, min(e.charged().largest(e.Began, e.To), e.Burst)) // what passed at once is a request
	}
	if r.crowded(e) {
		e.Request = max(e.Request, min(e.charged().largest(e.Began, e.To), writebackBurst))
		e.Waiting = max(e.Waiting, e.Request)
	}
	if r.observed { // it may not have tried for more: only what was seen counts
		e.Waiting = max(0, e.charged().largest(e.Began, e.To)-e.Limit*saved.Seconds())
	}
	// A delayed writer's own operations are into memory: the disk's count.
	e.Ops = r.writer.Ops.Between(e.From, e.To)
	if e.Delayed || r.observed {
		e.Ops = max(r.samples.Cgroup.Ops.Between(e.From, e.To), r.samples.Device.Ops.Between(e.From, e.To))
	}
	e.Others = r.others(place, e, rooted)
	e.Paced = place.Escapes
	e.Starved = min(1, r.samples.Late.Between(e.From, e.To)/window) // a wait may have begun before
	e.Late = time.Duration(r.samples.Late.largest(e.Began, e.To) * float64(time.Second))
	e.Late = min(e.Late, e.To-e.Began)
	if r.test.Key.IsRead() && r.result.Bytes > 0 {
		e.Cached = float64(r.result.Cached) / float64(r.result.Bytes)
	}
	return e
}

// crowded reports whether others in the group write beside a load that does not go through the page cache. The
// kernel may write back for them in large requests, each of which waits for the throttle and passes as a whole.
func (r *run) crowded(e Evidence) bool {
	return e.Writes && !e.Delayed && !r.test.Key.IsOps() && e.Cgroup.Between(e.From, e.To)-e.Writer.Between(e.From, e.To) > writebackRequest
}

// requests says how much may pass at once, of bytes.
func (r *run) requests(e *Evidence) {
	k := r.test.Key
	if k.IsOps() {
		return
	}
	e.Request = max(e.Request, float64(r.test.Block))
	if through := max(r.samples.Cgroup.largest(), r.samples.Device.largest()); r.observed || e.Delayed || k.IsRead() {
		e.Request = max(e.Request, 2*through)
	}
	switch {
	case e.Delayed:
		e.Request = max(e.Request, writebackRequest)
		e.Burst = writebackBurst
		if !r.observed {
			e.Burst = min(e.Burst, float64(r.test.Size))
		}
	case r.observed:
		e.Request = max(e.Request, readaheadRequest)
	}
}

// others is how much other processes do on the device, a second. rooted: the limit binds them too.
func (r *run) others(place Place, e Evidence, rooted bool) (perSecond float64) {
	if place.Sole || rooted || r.observed && place.Explained.has("foreign-inode") { // some of that is the target's
		return 0
	}
	perSecond = r.baseBytes
	if r.test.Key.IsOps() {
		perSecond = r.baseOps
	}
	if o := r.samples.Others.of(r.test.Key); len(o) > 0 {
		perSecond = max(perSecond, o.Between(e.From, e.To)/(e.To-e.From).Seconds())
	}
	return perSecond
}

// underWay is how much an asynchronous load has asked for at once, in what the limit counts.
func (t Test) underWay() float64 {
	if t.Key.IsOps() {
		return float64(t.Depth)
	}
	return float64(t.Depth * t.Block)
}

// delayed reports that writes may be done before they reach the disk.
func (r *run) delayed() bool { return r.test.Delayed() || r.observed && !r.test.Key.IsRead() }

// writebackRequest is what most requests of writeback do not exceed, and writebackBurst
// what none does: 8 MiB were seen on ext4 and 30 on XFS, counted by the throttle before
// the device's own limit splits them.
const (
	writebackRequest = 2 << 20
	writebackBurst   = 32 << 20
)

// readaheadRequest is btrfs's largest. (v2 counts it in the parts that the device takes.)
const readaheadRequest = 4 << 20

// dirty is how many bytes are in memory and not on the disk as the load ends.
func (r *run) dirty(e Evidence) int64 {
	if r.result.Left.Known {
		return r.result.Left.Dirty + r.result.Left.Writeback
	}
	ahead := r.writer.Bytes.Between(r.began, e.To) - r.samples.Device.Bytes.Between(r.began, e.To)
	return min(r.test.Size, max(0, int64(ahead)))
}

func since(s Series, began time.Duration) Series {
	var moved Series
	for _, p := range s {
		moved = moved.add(p.At-began, p.Total)
	}
	return moved
}

// why says in words what the verdict rests on; empty if the limit is held.
func (row Row) why(r *run, e Evidence) string {
	switch row.Reason {
	case TooMuch:
		return fmt.Sprintf("%s got through in %.1f s; a held group would do at most %s",
			row.amount(row.Done), row.Over.Seconds(), row.amount(row.Most))
	case Escaped:
		return "what reached the disk was not charged to the group"
	case Slow:
		if r.observed {
			return fmt.Sprintf("not saturated: the target did %.0f %% of the limit, which is too little to tell", 100*row.Ratio)
		}
		return fmt.Sprintf("only %.0f %% of the limit was reached: the disk is slower than the limit, or a group above has a lower limit", 100*row.Ratio)
	case Disturbed:
		return fmt.Sprintf("the group was removed after %.1f s: the target has ended", (r.samples.Gone - r.began).Seconds())
	case Busy:
		if row.Done > row.Most {
			return fmt.Sprintf("%s got through in %.1f s, and a held group would do at most %s; but no processor was free for %.1f s at a stretch, and the throttle lets I/O catch up after that",
				row.amount(row.Done), row.Over.Seconds(), row.amount(row.Most), e.Late.Seconds())
		}
		return fmt.Sprintf("only %.0f %% of the limit was reached, and no processor was free for %.0f %% of the time", 100*row.Ratio, 100*e.Starved)
	case Others:
		text := fmt.Sprintf("other processes do about %s on the device", row.Format(e.Others))
		if r.observed && e.hidden() > 0 {
			text += ", and some of that may be the target's: it wrote more than the kernel charged to it"
		}
		return text
	case Few:
		return fmt.Sprintf("%.0f operations are too few; measure longer: %s", e.Ops, (row.For * 4).Round(time.Second))
	case Large:
		return fmt.Sprintf("with requests of up to %s the window is too short; measure longer: %s",
			limit.FormatMeasured(max(e.Request, min(e.Burst, row.Done))), (row.For * 4).Round(time.Second))
	case Cache:
		if e.Writes {
			return fmt.Sprintf("the writer was told that %s are on the disk, but the disk has done only %s: the file system kept the rest in memory",
				row.amount(e.Writer.Between(e.Began, e.To)), row.amount(e.Device.Between(e.Began, e.To)))
		}
		if r.observed {
			return fmt.Sprintf("the target's processes read %s, of which the disk read %s: the rest came from the page cache, which no limit slows, or from pipes and sockets",
				row.amount(r.asked.Between(e.From, e.To)), row.amount(row.Done))
		}
		return fmt.Sprintf("%.0f %% of the reads came from the page cache, which no limit slows", 100*e.Cached)
	case Uncounted:
		return fmt.Sprintf("the kernel charged %s to the group, but the disk does not count its I/O (/sys/dev/block/%s/stat stood still), so weir cannot tell what the throttle let through",
			row.amount(e.Cgroup.Between(e.Began, e.To)), row.Device.Number)
	case Unwritten:
		return fmt.Sprintf("the disk did almost nothing in that time, and %s wait in memory for it; measure longer: %s",
			limit.FormatMeasured(float64(r.dirty(e))), (row.For * 4).Round(time.Second))
	case Uncharged:
		return "the disk did no more than the limit, but the kernel did not charge it to the group"
	}
	return ""
}

// amount writes a number of bytes or operations.
func (t Test) amount(n float64) string {
	if t.Key.IsOps() {
		return fmt.Sprintf("%.0f operations", n)
	}
	return limit.FormatMeasured(n)
}

// warn adds what a reader must know.
func (row *Row) warn(e Evidence, r *run) {
	say := func(format string, args ...any) { row.Warning = append(row.Warning, fmt.Sprintf(format, args...)) }
	if row.Unlike > 0.1*e.Limit && row.Verdict != NotHeld {
		say("%s more on the device, by the file system itself or by others", row.Format(row.Unlike))
	}
	if e.Starved > starvedMax && row.Reason != Busy {
		say("no processor was free for %.0f %% of the time", 100*e.Starved)
	}
	if e.Cached > 0.01 && row.Reason != Cache {
		say("%.0f %% of the reads came from the page cache", 100*e.Cached)
	}
	if n := len(r.result.Stalls); n > 0 {
		longest := time.Duration(0)
		for _, s := range r.result.Stalls {
			longest = max(longest, s.For)
		}
		say("%s: the longest took %.1f s", strings.Replace(fmt.Sprintf("%d operations stalled for more than 1 s", n), "1 operations", "1 operation", 1), longest.Seconds())
	}
	if r.hung {
		say("%s", r.hanging())
	}
	if r.oomKills > 0 {
		say("the group's memory ran out meanwhile: the kernel OOM-killed %d of its processes", r.oomKills)
	}
	if !r.samples.Counted {
		say("the kernel counts nothing for the group on this device")
	}
}
