package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plain"
	"github.com/weir-io/weir/internal/trace"
)

// barColumns is how wide a whole bar is.
const barColumns = 20

// printTrace writes a report for people.
func (a *app) printTrace(doc traceDocument, f *traceFlags) {
	a.out.Print("%s · %s", doc.what(), seconds1(doc.Seconds))
	if len(doc.Ops) == 0 {
		a.printNothing(f.kinds)
	}
	var heads [][]string
	for _, o := range doc.Ops {
		heads = append(heads, traceHead(o, doc.Seconds))
	}
	// The heads are laid out together, so that several kinds compare.
	lines := strings.Split(cli.Table(heads, 1, 2, 4, 6, 8), "\n")
	for i, o := range doc.Ops {
		if i > 0 {
			a.out.Print("")
		}
		a.out.Print("%s", lines[i])
		a.printShares(o)
		a.printUnseen(o)
	}
	for _, advice := range doc.Advice {
		a.out.Print("%s", advice.Text)
	}
	a.printBehind(doc.Behind)
	a.printSlow("not ended", doc.Open, uint64(len(doc.Open)))
	a.printSlow("slow", doc.Slow, doc.SlowCount)
	a.printFiles(doc.Files)
	a.sayUnseen(doc, f.verbose)
}

// traceHead is the line of one kind of operation.
func traceHead(o trace.OpsReport, seconds float64) []string {
	rate := ""
	if seconds > 0 {
		rate = cli.PerSecond(float64(o.Count) / seconds)
	}
	head := []string{o.Kind, counted(o.Count, "call", "calls"), rate, "p50", latencyUS(o.P50), "p99", latencyUS(o.P99), "max", latencyUS(o.Max)}
	if o.Errors > 0 {
		head = append(head, cli.Count(o.Errors)+" failed")
	}
	return head
}

// printShares says where the time of one kind of operation went.
func (a *app) printShares(o trace.OpsReport) {
	shares, seconds := o.Shares()
	if len(shares) == 0 {
		return
	}
	what := "where the time above p50 went"
	if o.Verdict.Of == "all" {
		what = "where the time went"
	}
	a.out.Print("%s (%s of %s):", what, seconds1(seconds), seconds1(o.Seconds))
	for _, s := range shares {
		a.out.Print("  %-18s %-*s %4s %%", s.Title, barColumns, cli.Bar(s.Share, barColumns), percent(s))
	}
}

// printUnseen says how many operations the figures of a kind leave out.
func (a *app) printUnseen(o trace.OpsReport) {
	if o.Unseen.Count == 0 {
		return
	}
	text := counted(o.Unseen.Count, "call", "calls") + " not fully traced"
	if o.Unseen.Seconds > 0 {
		text += fmt.Sprintf(", at least %s in all", seconds1(o.Unseen.Seconds))
	}
	text += ": the kernel skipped some BPF programs that weir had loaded. The figures above leave these calls out"
	if o.Verdict.Partial {
		text += ", so the shares may not be right for all calls. Trace again, for longer or on a less busy host"
	}
	a.out.Print("%s.", text)
}

// percent writes a share that is more than nothing.
func percent(s trace.Share) string {
	if s.Percent == 0 {
		return "<1"
	}
	return fmt.Sprint(s.Percent)
}

// printBehind says what went on that no operation waited for.
func (a *app) printBehind(behind []trace.BehindReport) {
	if len(behind) == 0 {
		return
	}
	a.out.Print("")
	a.out.Print("background I/O, which no traced call is known to wait for (mostly writeback); mean per request:")
	rows := [][]string{{"", "", "", "BLK-THROTTLE", "QUEUE", "DEVICE", "LONGEST"}}
	for _, b := range behind {
		each := func(seconds float64) string { return latencyUS(1e6 * seconds / float64(b.Requests)) }
		throttle := "not known"
		if b.ThrottleSeconds != nil {
			throttle = each(*b.ThrottleSeconds)
		}
		rows = append(rows, []string{"  " + b.Direction, counted(b.Requests, "request", "requests"), limit.FormatMeasured(float64(b.Bytes)),
			throttle, each(b.QueueSeconds), each(b.DeviceSeconds), latencyUS(b.TotalMost)})
	}
	a.out.Print("%s", strings.TrimSuffix(cli.Table(rows, 1, 2, 3, 4, 5, 6), "\n"))
}

// printNothing says that nothing was seen.
func (a *app) printNothing(kinds []trace.Kind) {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	a.out.Print("nothing seen: no %s on a file of a disk", strings.Join(names, ", "))
	a.out.Say("not traced: splice from a file, files in memory (tmpfs), pipes, sockets; and calls that began before the trace or had not ended")
}

// sayUnseen says what the kernel did not show.
func (a *app) sayUnseen(doc traceDocument, verbose bool) {
	a.sayMissing(doc.Missing, verbose)
	for _, l := range lostWords(doc.Lost) {
		a.out.Say("lost: %s", l)
	}
}

// sayMissing says in one line which hooks are missing, and with verbose what weir cannot show
// without each.
func (a *app) sayMissing(missing []trace.Missing, verbose bool) {
	if len(missing) == 0 {
		return
	}
	var names []string
	for _, m := range missing {
		names = append(names, m.Hook)
	}
	text := fmt.Sprintf("this kernel has no %s", strings.Join(names, "; no "))
	if !verbose {
		a.out.Say("%s (--verbose says what weir cannot show without it)", text)
		return
	}
	a.out.Say("%s", text)
	for _, m := range missing {
		a.out.Say("  %s: %s (%s)", m.Hook, m.Without, short(m.Reason))
	}
}

// lostWords say what of a trace was not seen.
func lostWords(lost trace.Lost) (words []string) {
	for _, l := range []struct {
		n    uint64
		what string
	}{
		{lost.Tasks, "operations not traced: too many threads at once"},
		{lost.IOs, "I/Os not traced: too many in flight at once (their time counts and charges that to others)"},
		{lost.Events, "slow operations not listed: they came too fast"},
		{lost.Stacks, "sleeps whose reason the kernel did not tell (they count as other)"},
		{lost.Files, "operations not counted by file: too many files"},
		{lost.Missed, "times the kernel skipped a BPF program that weir had loaded, for any process"},
	} {
		if l.n > 0 {
			words = append(words, cli.Count(l.n)+" "+l.what)
		}
	}
	return words
}

// reasonRunes is how much of a kernel's refusal is for people; --json has all of it.
const reasonRunes = 72

func short(reason string) string {
	reason, _, _ = strings.Cut(reason, ";")
	if runes := []rune(reason); len(runes) > reasonRunes {
		return string(runes[:reasonRunes]) + "…"
	}
	return reason
}

// tableMost is how many rows people get of what can be thousands.
const tableMost = 20

// printSlow lists single operations, of which there were count.
func (a *app) printSlow(what string, all []trace.Slow, count uint64) {
	if count == 0 {
		return
	}
	a.out.Print("")
	a.out.Print("%s %s:", counted(count, "operation", "operations"), what)
	shown := slices.Clone(all[:min(len(all), tableMost)])
	rows := [][]string{{"  AT", "PROCESS", "", "", "TOOK", "MAINLY", "FILE"}}
	for _, s := range shown {
		rows = append(rows, []string{fmt.Sprintf("  %.3f s", s.After), fmt.Sprintf("%s (%d)", plain.Line(s.Process), s.PID), s.Kind, sizeOf(s.Bytes), latencyUS(s.Took),
			trace.TitleOf(s.Cause), plain.Line(s.File)})
	}
	a.printRows(rows, count, []int{0, 3, 4})
}

// printFiles lists sums by file.
func (a *app) printFiles(all []trace.File) {
	if len(all) == 0 {
		return
	}
	a.out.Print("")
	a.out.Print("by file:")
	rows := [][]string{{"  ", "CALLS", "BYTES", "TIME", "MAX", "MAINLY", "FILE"}}
	for _, f := range all[:min(len(all), tableMost)] {
		rows = append(rows, []string{"  " + f.Kind, cli.Count(f.Count), sizeOf(f.Bytes), seconds1(f.Seconds), latencyUS(f.Max), trace.TitleOf(f.Cause), plain.Line(f.File)})
	}
	a.printRows(rows, uint64(len(all)), []int{1, 2, 3, 4})
}

// printRows prints a table with its heads, and how many rows it leaves out.
func (a *app) printRows(rows [][]string, count uint64, right []int) {
	a.out.Print("%s", strings.TrimSuffix(cli.Table(rows, right...), "\n"))
	if left := count - uint64(len(rows)-1); left > 0 {
		a.out.Print("  and %s more (--json lists more of them)", cli.Count(left))
	}
}

// sizeOf writes bytes; nothing for none.
func sizeOf(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return limit.FormatMeasured(float64(bytes))
}

// counted is cli.Plural with a large number.
func counted(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return cli.Count(n) + " " + many
}

// latencyUS writes µs.
func latencyUS(us float64) string { return cli.Latency(time.Duration(us * float64(time.Microsecond))) }

// seconds1 writes a sum of times.
func seconds1(s float64) string { return cli.Latency(time.Duration(s * float64(time.Second))) }
