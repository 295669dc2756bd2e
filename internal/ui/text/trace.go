package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/ui/cli"
)

// barColumns is how wide a whole bar is.
const barColumns = 20

// WhatOf names what a trace was of: a target, or the whole host.
func WhatOf(target string) string {
	if target == "" {
		return "the whole host"
	}
	return target
}

// Trace prints a trace of some kinds of operations. verbose says what cannot be shown for each
// hook that the kernel does not have.
func Trace(out *cli.Out, t trace.Traced, kinds []trace.Kind, verbose bool) {
	out.Print("%s · %s", WhatOf(t.Target), cli.Latency(t.Took))
	if len(t.Ops) == 0 {
		nothing(out, kinds)
	}
	var heads [][]string
	for _, o := range t.Ops {
		heads = append(heads, traceHead(o, t.Took))
	}
	// The heads are laid out together, so that several kinds compare.
	lines := strings.Split(cli.Table(heads, 1, 2, 4, 6, 8), "\n")
	for i, o := range t.Ops {
		if i > 0 {
			out.Print("")
		}
		out.Print("%s", lines[i])
		shares(out, o)
		unseen(out, o)
	}
	for _, advice := range t.Advice {
		out.Print("%s", advice.Text)
	}
	behind(out, t.Behind)
	slow(out, "not ended", t.Open, uint64(len(t.Open)))
	slow(out, "slow", t.Slow, t.SlowCount)
	files(out, t.Files)
	sayMissing(out, t.Missing, verbose)
	for _, l := range LostWords(t.Lost) {
		out.Say("lost: %s", l)
	}
}

// traceHead is the line of one kind of operation.
func traceHead(o trace.OpsReport, took time.Duration) []string {
	rate := ""
	if took > 0 {
		rate = cli.PerSecond(float64(o.Count) / took.Seconds())
	}
	head := []string{o.Kind.String(), cli.CountOf(o.Count, "call", "calls"), rate, "p50", cli.Latency(o.P50), "p99", cli.Latency(o.P99), "max", cli.Latency(o.Max)}
	if o.Errors > 0 {
		head = append(head, cli.Count(o.Errors)+" failed")
	}
	return head
}

// shares says where the time of one kind of operation went.
func shares(out *cli.Out, o trace.OpsReport) {
	parts, of := o.Shares()
	if len(parts) == 0 {
		return
	}
	out.Print("%s (%s of %s):", SharesWords(o), cli.Latency(of), cli.Latency(o.Sum()))
	for _, s := range parts {
		out.Print("  %-18s %-*s %4s %%", s.Title, barColumns, cli.Bar(s.Share, barColumns), SharePercent(s))
	}
}

// SharesWords say what the shares of one kind of operation are of.
func SharesWords(o trace.OpsReport) string {
	if o.Verdict.All {
		return "where the time went"
	}
	return "where the time above p50 went"
}

// unseen says how many operations the figures of a kind leave out.
func unseen(out *cli.Out, o trace.OpsReport) {
	if words := UnseenWords(o); words != "" {
		out.Print("%s", words)
	}
}

// UnseenWords say how many operations the figures of a kind leave out; empty: none.
func UnseenWords(o trace.OpsReport) string {
	if o.Unseen.Count == 0 {
		return ""
	}
	text := cli.CountOf(o.Unseen.Count, "call", "calls") + " not fully traced"
	if o.Unseen.Time > 0 {
		text += fmt.Sprintf(", at least %s in all", cli.Latency(o.Unseen.Time))
	}
	text += ": the kernel skipped some BPF programs that weir had loaded. The figures above leave these calls out"
	if o.Verdict.Partial {
		text += ", so the shares may not be right for all calls. Trace again, for longer or on a less busy host"
	}
	return text + "."
}

// SharePercent writes a share that is more than nothing.
func SharePercent(s trace.Share) string {
	if s.Percent == 0 {
		return "<1"
	}
	return fmt.Sprint(s.Percent)
}

// behind says what went on that no operation waited for.
func behind(out *cli.Out, all []trace.BehindReport) {
	if len(all) == 0 {
		return
	}
	out.Print("")
	out.Print("background I/O, which no traced call is known to wait for (mostly writeback); mean per request:")
	rows := [][]string{{"", "", "", "BLK-THROTTLE", "QUEUE", "DEVICE", "LONGEST"}}
	for _, b := range all {
		each := func(sum time.Duration) string { return cli.Latency(sum / time.Duration(b.Requests)) }
		throttle := "not known"
		if b.ThrottleKnown {
			throttle = each(b.Throttle)
		}
		rows = append(rows, []string{"  " + b.Direction(), cli.CountOf(b.Requests, "request", "requests"), limit.FormatMeasured(float64(b.Bytes)),
			throttle, each(b.Queue), each(b.Device), cli.Latency(b.TotalMost)})
	}
	out.Text(cli.Table(rows, 1, 2, 3, 4, 5, 6))
}

// nothing says that nothing was seen.
func nothing(out *cli.Out, kinds []trace.Kind) {
	var names []string
	for _, k := range kinds {
		names = append(names, k.String())
	}
	out.Print("nothing seen: no %s on a file of a disk", strings.Join(names, ", "))
	out.Say("not traced: splice from a file, files in memory (tmpfs), pipes, sockets; and calls that began before the trace or had not ended")
}

// sayMissing says in one line which hooks are missing, and with verbose what changes without
// each.
func sayMissing(out *cli.Out, missing []trace.Missing, verbose bool) {
	text := MissingWords(missing)
	if text == "" {
		return
	}
	if !verbose {
		out.Say("%s (--verbose says what changes without it)", text)
		return
	}
	out.Say("%s", text)
	for _, m := range missing {
		out.Say("  %s: %s (%s)", m.Hook, m.Without, short(m.Reason))
	}
}

// MissingWords say which hooks the kernel does not have; empty: it has all.
func MissingWords(missing []trace.Missing) string {
	if len(missing) == 0 {
		return ""
	}
	var names []string
	for _, m := range missing {
		name := m.Hook
		if name == trace.CallsHook {
			name += ", so each system call of this host took longer during the trace"
		}
		names = append(names, name)
	}
	return "this kernel has no " + strings.Join(names, "; no ")
}

// LostWords say what of a trace was not seen.
func LostWords(lost trace.Lost) (words []string) {
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

// sizeOf writes bytes; nothing for none.
func sizeOf(bytes uint64) string {
	if bytes == 0 {
		return ""
	}
	return limit.FormatMeasured(float64(bytes))
}
