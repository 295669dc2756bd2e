package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/latency"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/trace"
)

// A latencyReport is what trace --latency found, before it is printed.
type latencyReport struct {
	dir     string
	chain   blkdev.Chain
	version cgroupfs.Version
	places  []place.Placed
	runs    []latency.Run
	flags   *latencyFlags
}

func (r latencyReport) title() string {
	title := fmt.Sprintf("%s copied in blocks of 64 KiB · %s · cgroup %s · kernel %s",
		limit.FormatSize(r.flags.sizeBytes), r.chain, r.version, kernelRelease())
	for _, p := range r.places {
		title += " · " + p.Limit.String() + " on " + p.Device.Node
	}
	return title
}

// reportLatency prints the runs, and draws them.
func (a *app) reportLatency(r latencyReport) error {
	if a.out.JSON {
		if err := a.out.Document(latencyDocumentOf(r)); err != nil {
			return err
		}
	} else {
		a.printLatency(r)
	}
	if r.flags.svg == "" {
		return nil
	}
	var b bytes.Buffer
	if err := drawLatency(&b, r); err != nil {
		return err
	}
	return os.WriteFile(r.flags.svg, b.Bytes(), 0o644)
}

func (a *app) printLatency(r latencyReport) {
	a.out.Print("%s", r.title())
	table := [][]string{{"RUN", "WRITES", "p50", "p90", "p99", "p99.9", "MAX", "RATE"}}
	for _, run := range r.runs {
		s := run.Summary()
		table = append(table, []string{run.Name(), fmt.Sprint(s.Count), cli.Latency(s.P50), cli.Latency(s.P90), cli.Latency(s.P99),
			cli.Latency(s.P999), cli.Latency(s.Max), limit.FormatMeasured(s.BytesPerSec()) + "/s"})
	}
	a.out.Print("%s", cli.Table(table, 1, 2, 3, 4, 5, 6, 7))
	a.out.Print("%s", latencyText(r))
	for _, line := range latency.Words(r.runs, cli.Latency) {
		a.out.Print("%s", line)
	}
	a.sayUntraced(r.runs, r.flags.verbose)
	a.out.Say("the data was made in memory, because reading a source file would take page cache too")
}

// sayUntraced says what of the split is not known, and why.
func (a *app) sayUntraced(runs []latency.Run, verbose bool) {
	said := map[string]bool{}
	say := func(what, line string) {
		if !said[what] {
			said[what] = true
			a.out.Say("%s", line)
		}
	}
	for _, run := range runs {
		if run.Trace == nil {
			say("", "where the time went is not known: "+run.NoTrace)
			continue
		}
		if !said["missing"] { // the same in each run
			said["missing"] = true
			a.sayMissing(run.Trace.Missing, verbose)
		}
		for _, l := range lostWords(run.Trace.Lost) {
			say("lost: "+l, run.Name()+": lost: "+l)
		}
	}
}

// latencyDocument is weir trace --latency's JSON (docs/json.md).
type latencyDocument struct {
	cli.Schema
	Directory string           `json:"directory"`
	Chain     string           `json:"chain"`
	Version   int              `json:"cgroup_version"`
	Kernel    string           `json:"kernel"`
	Size      uint64           `json:"size_bytes"`
	Block     int              `json:"block_bytes"`
	Memory    uint64           `json:"memory_bytes"`
	Devices   []latencyDevice  `json:"devices"`
	Runs      []latencyRunJSON `json:"runs"`
	Words     []string         `json:"words"`
}

type latencyDevice struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
}

type latencyRunJSON struct {
	Name      string         `json:"name"`
	Direct    bool           `json:"direct"`
	Memory    *uint64        `json:"memory_bytes"`
	Stopped   string         `json:"stopped"`
	Count     int            `json:"count"`
	Seconds   float64        `json:"seconds"`
	Rate      float64        `json:"bytes_per_second"`
	Mean      float64        `json:"mean_us"`
	P50       float64        `json:"p50_us"`
	P90       float64        `json:"p90_us"`
	P99       float64        `json:"p99_us"`
	P999      float64        `json:"p999_us"`
	Max       float64        `json:"max_us"`
	Slots     []latencySlot  `json:"slots"`
	Untraced  string         `json:"untraced"`
	Trace     *latencyTrace  `json:"trace"`
	SplitOver []latencySplit `json:"split_over_time"`
}

type latencySlot struct {
	From  float64 `json:"from_seconds"`
	To    float64 `json:"to_seconds"`
	Bytes int64   `json:"bytes"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
}

type latencyTrace struct {
	Seconds  float64            `json:"seconds"`
	Split    map[string]float64 `json:"split_seconds"`
	AboveP50 map[string]float64 `json:"above_p50_seconds"`
	Verdict  trace.Verdict      `json:"verdict"`
	Reclaim  trace.Reclaim      `json:"reclaim"`
	Missing  []trace.Missing    `json:"missing"`
	Lost     trace.Lost         `json:"lost"`
}

type latencySplit struct {
	From   float64            `json:"from_seconds"`
	To     float64            `json:"to_seconds"`
	Writes uint64             `json:"writes"`
	Split  map[string]float64 `json:"split_seconds"`
}

func latencyDocumentOf(r latencyReport) latencyDocument {
	doc := latencyDocument{Schema: cli.SchemaOf("trace.latency"), Directory: r.dir, Chain: r.chain.String(), Version: int(r.version), Kernel: kernelRelease(),
		Size: r.flags.sizeBytes, Block: latency.Block, Memory: r.flags.memoryBytes, Devices: []latencyDevice{}, Words: append([]string{}, latency.Words(r.runs, cli.Latency)...)}
	for _, p := range r.places {
		doc.Devices = append(doc.Devices, latencyDevice{p.Device.Node, p.Device.Number, p.Limit})
	}
	for _, run := range r.runs {
		doc.Runs = append(doc.Runs, latencyRunOf(run))
	}
	return doc
}

// us is a time in microseconds.
func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func latencyRunOf(run latency.Run) latencyRunJSON {
	s := run.Summary()
	j := latencyRunJSON{Name: run.Name(), Direct: run.Direct, Stopped: run.Stopped, Count: s.Count, Seconds: s.Elapsed.Seconds(), Rate: s.BytesPerSec(), Mean: us(s.Mean),
		P50: us(s.P50), P90: us(s.P90), P99: us(s.P99), P999: us(s.P999), Max: us(s.Max), Slots: []latencySlot{}, SplitOver: []latencySplit{}, Untraced: run.NoTrace}
	if run.Memory != 0 {
		j.Memory = &run.Memory
	}
	for _, slot := range run.Slots(latencySlots) {
		j.Slots = append(j.Slots, latencySlot{slot.From.Seconds(), slot.To.Seconds(), slot.Bytes, us(slot.P50), us(slot.P99), us(slot.Max)})
	}
	if run.Trace == nil {
		return j
	}
	t := &latencyTrace{Verdict: trace.Verdict{Causes: []trace.Cause{}}, Reclaim: run.Trace.Reclaim, Missing: append([]trace.Missing{}, run.Trace.Missing...), Lost: run.Trace.Lost,
		Split: map[string]float64{}, AboveP50: map[string]float64{}}
	if len(run.Trace.Ops) > 0 {
		o := run.Trace.Ops[0]
		t.Seconds, t.Split, t.AboveP50, t.Verdict = o.Seconds, o.Split, o.AboveP50, o.Verdict
	}
	j.Trace = t
	for _, slot := range run.SplitSlots(latencySlots) {
		j.SplitOver = append(j.SplitOver, latencySplit{slot.From.Seconds(), slot.To.Seconds(), slot.Writes, secondsByPart(slot.Split)})
	}
	return j
}

// secondsByPart names the parts that there are.
func secondsByPart(s trace.Split) map[string]float64 {
	m := map[string]float64{}
	for p, ns := range s {
		if ns > 0 {
			m[trace.Part(p).String()] = time.Duration(ns).Seconds()
		}
	}
	return m
}

// latencyText is the charts for a terminal.
func latencyText(r latencyReport) string {
	var b strings.Builder
	writeLatencyCharts(&b, r)
	return strings.TrimRight(b.String(), "\n")
}
