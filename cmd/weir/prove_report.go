package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/plot"
	"github.com/weir-io/weir/internal/prove"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/why"
)

// A report is what was proved, before it is printed.
type report struct {
	what     string // for people
	target   *target.Target
	observed bool
	asked    asking
	places   []prove.Place
	rows     []prove.Row
	phases   []prove.Phase // of --neighbour
	took     time.Duration
}

func (r report) verdict() prove.Verdict {
	var all []prove.Verdict
	for _, row := range r.rows {
		all = append(all, row.Verdict)
	}
	return prove.Worst(all)
}

// reportProof prints the rows, draws them, and ends with the verdict's exit code.
func (a *app) reportProof(r report, f *proveFlags) error {
	version := a.version1or2(r)
	if a.out.JSON {
		if err := a.out.Document(documentOf(r, version)); err != nil {
			return err
		}
	} else {
		a.printProof(r, version)
	}
	if f.svg != "" {
		var b bytes.Buffer
		if err := plot.Draw(&b, r.title(version), chartsOf(r.rows)); err != nil {
			return err
		}
		if err := os.WriteFile(f.svg, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return verdictStatus(r.verdict())
}

func verdictStatus(v prove.Verdict) error {
	switch v {
	case prove.NotHeld:
		return &cli.StatusError{Status: cli.ExitNotDone}
	case prove.CannotTell:
		return &cli.StatusError{Status: cli.ExitUnsupported}
	}
	return nil
}

func (a *app) version1or2(r report) cgroupfs.Version {
	if r.target != nil {
		return r.target.Group.Hierarchy().Version
	}
	if h, err := a.io(); err == nil {
		return h.Version
	}
	return 0
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

func (r report) title(version cgroupfs.Version) string {
	var places []string
	for _, p := range r.places {
		where := p.Device.Node
		switch {
		case p.Sole:
			where = "scratch disk " + where
		case r.target == nil:
			where = p.Dir + " on " + where
		}
		if p.FS != nil {
			where += ", " + p.FS.FSType
		}
		places = append(places, where+": "+rates(p.Limit))
	}
	return fmt.Sprintf("%s · %s · cgroup %s · kernel %s", r.what, strings.Join(places, "; "), version, kernelRelease())
}

func (a *app) printProof(r report, version cgroupfs.Version) {
	a.out.Print("%s", r.title(version))
	if len(r.phases) > 0 {
		a.printPhases(r)
	}
	table := [][]string{{"", "WRITER", "CGROUP", "DEVICE", "÷ LIMIT", "", "ANY 1 s", "OPS", ""}}
	var notes []string
	several := len(r.places) > 1
	for i, row := range r.rows {
		if several && (i == 0 || r.rows[i-1].Device.Number != row.Device.Number) {
			table = append(table, []string{row.Device.Node + " (" + row.Device.Number.String() + ")"})
		}
		verdict := verdictText(row) + marks(row)
		if row.Why != "" || len(row.Warning) > 0 {
			note := row.Name + ": " + noteOf(row)
			if several {
				note = row.Device.Node + ", " + note
			}
			notes = append(notes, note)
		}
		cells := []string{row.Name, "–", "–", "–", "", "", "", "", verdict}
		if row.Window > 0 {
			ratio, within, any := ratioText(row)
			cells = []string{row.Name, writerText(row), row.Format(row.Cgroup.Rate), row.Format(row.Disk.Rate), ratio, within, any, fmt.Sprintf("%.0f", row.Ops), verdict}
		}
		table = append(table, cells)
	}
	a.out.Print("%s", strings.TrimSuffix(cli.Table(table, 1, 2, 3, 4, 6, 7), "\n"))
	a.printFindings(r)
	for _, n := range notes {
		a.out.Print("%s", n)
	}
	a.out.Print("%s · %s", windows(r), exitText(r.verdict()))
}

func writerText(row prove.Row) string {
	if row.Path == "" && row.Writer.Rate == 0 {
		return "–"
	}
	return row.Format(row.Writer.Rate)
}

func verdictText(row prove.Row) string {
	switch row.Verdict {
	case prove.NotHeld:
		return "NOT HELD"
	case prove.HeldAtDevice:
		ahead := ""
		if row.Dirty > 0 {
			ahead = fmt.Sprintf(": the writer is ahead by %s, %s to drain", limit.FormatMeasured(float64(row.Dirty)), cli.Duration(row.Drain))
		}
		return "held at the device" + ahead
	}
	return string(row.Verdict)
}

// noteOf joins why a row is not held, and what must be known beside.
func noteOf(row prove.Row) string {
	parts := slices.Clone(row.Warning)
	if row.Why != "" {
		parts = slices.Insert(parts, 0, row.Why)
	}
	return strings.Join(parts, "; ")
}

func ratioText(row prove.Row) (ratio, within, any string) {
	asked := float64(row.Rate)
	digits := 2
	if row.Ratio >= 9.995 {
		digits = 1
	}
	ratio = fmt.Sprintf("%.*f", digits, row.Ratio)
	if !math.IsInf(row.Within, 0) {
		within = fmt.Sprintf("±%.*f", digits, row.Within)
	}
	judged := row.Cgroup
	if judged.Rate < row.Disk.Rate/2 && row.Verdict != prove.Held {
		judged = row.Disk
	}
	any = fmt.Sprintf("%.2f–%.2f", judged.Low/asked, judged.High/asked)
	return ratio, within, any
}

func windows(r report) string {
	var shortest, longest time.Duration
	for i, row := range r.rows {
		if i == 0 || row.For < shortest {
			shortest = row.For
		}
		longest = max(longest, row.For)
	}
	rows := cli.Plural(len(r.rows), "row", "rows") + " in " + cli.Duration(r.took)
	switch {
	case r.observed:
		return cli.Duration(longest) + " observed"
	case shortest == longest:
		return cli.Duration(longest) + " per row, start-up left out · " + rows
	}
	return cli.Duration(shortest) + " to " + cli.Duration(longest) + " per row, start-up left out · " + rows
}

func exitText(v prove.Verdict) string {
	switch v {
	case prove.NotHeld:
		return "NOT HELD (exit 1)"
	case prove.CannotTell:
		return "cannot tell (exit 3)"
	}
	return string(prove.Held)
}

// chartsOf draws a panel a row.
func chartsOf(rows []prove.Row) []plot.Chart {
	var charts []plot.Chart
	for _, row := range rows {
		who := "writer"
		if row.Key.IsRead() {
			who = "reader"
		}
		charts = append(charts, plot.Chart{
			Title: row.Name, Note: verdictText(row), XUnit: "s", Format: row.Format,
			Level: float64(row.Rate), LevelName: "limit " + row.Format(float64(row.Rate)),
			From: row.Trace.From.Seconds(), To: row.Trace.To.Seconds(), FromName: "the time that counts",
			Lines: []plot.Line{{Name: who, Points: points(row.Trace.Writer)}, {Name: "cgroup", Points: points(row.Trace.Cgroup)}, {Name: "device", Points: points(row.Trace.Device)}},
		})
	}
	return charts
}

func points(s prove.Series) []plot.Point {
	var all []plot.Point
	for _, p := range s {
		all = append(all, plot.Point{X: p.At.Seconds(), Y: p.Total})
	}
	return all
}

// proveDocument is weir prove's JSON (docs/json.md).
type proveDocument struct {
	cli.Schema
	Target   *string       `json:"target"` // null: a group of weir's own
	Cgroup   *string       `json:"cgroup"`
	Version  int           `json:"cgroup_version"`
	Kernel   string        `json:"kernel"`
	Observed bool          `json:"observed"`
	Verdict  prove.Verdict `json:"verdict"`
	Rows     []proveRow    `json:"rows"`
	Asked    string        `json:"asked"`
	Findings []why.Finding `json:"findings"`
	Phases   []provePhase  `json:"neighbour"`
}

type proveRow struct {
	Device     string        `json:"device"`
	Number     blkdev.Number `json:"number"`
	Name       string        `json:"name"`
	Path       load.Path     `json:"path,omitempty"`
	Direction  string        `json:"direction"`
	Unit       string        `json:"unit"`
	Limit      uint64        `json:"limit"`
	Random     bool          `json:"random"`
	Depth      int           `json:"depth"`
	Block      int           `json:"block_bytes"`
	Window     float64       `json:"window_seconds"`
	Warm       float64       `json:"left_out_seconds"`
	Operations float64       `json:"operations"`
	Writer     prove.Seen    `json:"writer"`
	Charged    prove.Seen    `json:"cgroup"`
	Disk       prove.Seen    `json:"disk"`
	Others     float64       `json:"others"`
	Ratio      *float64      `json:"ratio"`
	Within     *float64      `json:"ratio_within"`
	Verdict    prove.Verdict `json:"verdict"`
	Reason     prove.Reason  `json:"reason,omitempty"`
	Why        string        `json:"why,omitempty"`
	Warnings   []string      `json:"warnings"`
	Findings   []int         `json:"findings"`
	Dirty      int64         `json:"dirty_bytes"`
	Drain      float64       `json:"drain_seconds"`
	P50        float64       `json:"p50_seconds"`
	P99        float64       `json:"p99_seconds"`
	Max        float64       `json:"max_seconds"`
}

func documentOf(r report, version cgroupfs.Version) proveDocument {
	doc := proveDocument{Schema: cli.SchemaOf("prove"), Version: int(version), Kernel: kernelRelease(), Observed: r.observed, Verdict: r.verdict(), Rows: []proveRow{}, Asked: r.asked.command, Findings: r.asked.findings(r.rows), Phases: phasesOf(r.phases)}
	if r.target != nil {
		name, group := r.target.String(), r.target.Group.Path()
		doc.Target, doc.Cgroup = &name, &group
	}
	for _, row := range r.rows {
		unit := "bytes"
		if row.Key.IsOps() {
			unit = "operations"
		}
		p := proveRow{Device: row.Device.Node, Number: row.Device.Number, Name: row.Name, Path: row.Path, Direction: row.Key.Direction(), Unit: unit,
			Limit: row.Rate, Random: row.Random, Depth: max(1, row.Depth), Block: row.Block, Window: row.Window.Seconds(), Warm: row.Warm.Seconds(),
			Operations: math.Round(row.Ops), Writer: row.Writer, Charged: row.Cgroup, Disk: row.Disk, Others: row.Others,
			Verdict: row.Verdict, Reason: row.Reason, Why: row.Why, Warnings: append([]string{}, row.Warning...), Findings: append([]int{}, row.Findings...),
			Dirty: row.Dirty, Drain: row.Drain.Seconds(), P50: row.P50.Seconds(), P99: row.P99.Seconds(), Max: row.Max.Seconds()}
		if row.Window > 0 {
			p.Ratio = &row.Ratio
			if !math.IsInf(row.Within, 0) && !math.IsNaN(row.Within) {
				p.Within = &row.Within
			}
		}
		doc.Rows = append(doc.Rows, p)
	}
	return doc
}
