package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/quota"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/watch"
)

func newShow(a *app) *cobra.Command {
	window := time.Second
	cmd := &cobra.Command{
		Use:   "show [TARGET]",
		Short: "Show limits, and the I/O under them",
		Long: "Show a target's limits for each device, and what the target did under them in the last second. Without a target, show\n" +
			"every limited cgroup of this host, whoever set the limit. Each has the name of its unit or container, or its path.\n\n" +
			"For docker:NAME and podman:NAME, weir also shows the limits that Docker or Podman stores for the container and sets\n" +
			"when it starts.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("show: one target at most; %d given", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if window < 0 {
				return cli.Usagef("--for %s: a time cannot be negative", window)
			}
			return a.show(cmd.Context(), args, window)
		},
	}
	cmd.Flags().DurationVar(&window, "for", window, "measure for this `TIME`; 0: do not measure")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// showDocument is weir show's JSON (docs/json.md).
type showDocument struct {
	cli.Schema
	WindowSeconds float64     `json:"window_seconds"` // 0: rates were not measured
	Groups        []showGroup `json:"groups"`
}

type showGroup struct {
	Target    string       `json:"target"`
	Cgroup    string       `json:"cgroup"`
	Version   int          `json:"cgroup_version"`
	Owner     target.Owner `json:"owner"`
	Processes int          `json:"processes"`
	Devices   []showDevice `json:"devices"`
	// Recorded is what the owner stores for the target, beside the limits in force.
	Recorded *[]recordedDocument `json:"recorded,omitempty"`

	// Paced is what weir's pacer holds of the group's buffered writes, in bytes a second.
	Paced uint64 `json:"paced_wbps,omitempty"`
	// Escapes is what it holds of what the kernel charges to other groups, with the group's own,
	// in bytes a second (cgroup v2).
	Escapes uint64 `json:"paced_escapes_wbps,omitempty"`
	// Lapsed is why it holds nothing of the group, though it was asked to.
	Lapsed string `json:"paced_lapsed,omitempty"`
	// Missed says which processes of the group the pacer cannot pause, and why.
	Missed string `json:"paced_missed,omitempty"`

	// Space is what the target's own files may take, and take.
	Space *quota.Status `json:"space,omitempty"`

	// Kept is what weir has on record for the target's next start.
	Kept []keptDocument `json:"kept,omitempty"`

	record *target.Record
}

type showDevice struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
	// Expected is what is to hold the limit, by how the I/O is done, and Foreign what is to hold
	// writes over files of other groups; null: they are no question of their own.
	Expected []place.Cell `json:"expected"`
	Foreign  *place.By    `json:"foreign"`
	Rates    *watch.Rates `json:"rates"`            // null: not measured, or the kernel counts nothing for the device
	Volume   string       `json:"volume,omitempty"` // the name of the weir volume on this device

	standing *place.Expected // nil: it is not known
}

func (a *app) show(ctx context.Context, args []string, window time.Duration) error {
	h, err := a.io()
	if err != nil {
		return err
	}
	var groups []watch.Limited
	var t *target.Target
	if len(args) == 0 {
		groups, err = watch.Find(h.Root())
	} else {
		var found target.Target
		if found, err = a.target(ctx, args[0]); err != nil {
			return err
		}
		t = &found
		groups, err = oneGroup(found)
	}
	if err != nil {
		return err
	}
	measured := window > 0 && len(groups) > 0
	if measured {
		if err := watch.Measure(ctx, groups, window); err != nil {
			return err
		}
	}
	doc := showDocument{Schema: cli.SchemaOf("show"), Groups: []showGroup{}}
	if measured {
		doc.WindowSeconds = window.Seconds()
	}
	names := map[blkdev.Number]string{}
	systemdRuns := systemd.Running(a.root)
	for _, g := range groups {
		doc.Groups = append(doc.Groups, a.showGroup(ctx, g, measured, names, systemdRuns))
	}
	if err := a.markPaced(doc.Groups); err != nil {
		return err
	}
	views := []int{0}
	if t != nil {
		views = t.Views()
	}
	if err := a.markExpected(ctx, groups, doc.Groups, views); err != nil {
		return err
	}
	a.markVolumes(doc.Groups)
	a.nameContainers(ctx, doc.Groups)
	if t != nil {
		doc.Groups[0].Target, doc.Groups[0].Owner = t.String(), t.Owner
		if t.Record == nil {
			t.Record = a.unitRecord(ctx, *t)
		}
		doc.Groups[0].setRecord(t.Record)
		doc.Groups[0].Space = a.spaceOf(ctx, *t)
		r, err := a.keptFor(*t)
		if err != nil {
			return err
		}
		doc.Groups[0].Kept = keptDocuments(r.Entries)
	}
	if a.out.JSON {
		return a.out.Document(doc)
	}
	a.printShow(doc, t != nil)
	return nil
}

// oneGroup reads a target's group. A group that cannot have rules causes no error here.
func oneGroup(t target.Target) ([]watch.Limited, error) {
	l, err := watch.Of(t.Group)
	if err != nil {
		return nil, err
	}
	return []watch.Limited{l}, nil
}

func (a *app) showGroup(ctx context.Context, l watch.Limited, measured bool, names map[blkdev.Number]string, systemdRuns bool) showGroup {
	owner := target.OwnerOf(l.Group, systemdRuns)
	g := showGroup{Target: target.NameOf(l.Group, owner), Cgroup: l.Group.Path(), Version: int(l.Group.Hierarchy().Version), Owner: owner, Devices: []showDevice{}}
	if members, err := target.Members(l.Group); err == nil {
		g.Processes = len(members)
	}
	for _, u := range l.Usages {
		if names[u.Device] == "" {
			names[u.Device] = a.device(ctx, u.Device).Node
		}
		d := showDevice{Device: names[u.Device], Number: u.Device, Limit: u.Limit, Expected: []place.Cell{}}
		if measured && u.Counted {
			d.Rates = &u.Rates
		}
		g.Devices = append(g.Devices, d)
	}
	return g
}

func (a *app) printShow(doc showDocument, one bool) {
	if len(doc.Groups) == 0 {
		a.out.Print("no group on this host has a disk I/O limit")
		return
	}
	var above []showGroup // the groups that this one is below, the root first
	for i, g := range doc.Groups {
		for len(above) > 0 && !g.isBelow(above[len(above)-1]) {
			above = above[:len(above)-1]
		}
		indent := strings.Repeat("  ", len(above))
		above = append(above, g)
		if i > 0 {
			a.out.Print("")
		}
		for _, line := range g.lines(one) {
			a.out.Print("%s%s", indent, line)
		}
	}
}

func (g showGroup) isBelow(above showGroup) bool {
	return g.Version == above.Version && strings.HasPrefix(g.Cgroup, strings.TrimSuffix(above.Cgroup, "/")+"/")
}

// lines are a group, and a table of its limits beside those that its owner keeps.
func (g showGroup) lines(one bool) []string {
	lines := []string{fmt.Sprintf("%s  cgroup v%d, owner %s, %s", g.Target, g.Version, g.Owner, cli.Plural(g.Processes, "process", "processes"))}
	if one && g.Target != "cgroup:"+g.Cgroup {
		lines = append(lines, "  in cgroup "+g.Cgroup)
	}
	rows := [][]string{{"", "DEVICE", "", "NOW", "LIMIT"}}
	right := []int{3, 4}
	if g.record != nil && len(g.record.Limits) > 0 {
		rows[0], right = append(rows[0], strings.ToUpper(g.record.By)+" KEEPS"), append(right, 5)
	}
	rows[0] = append(rows[0], "EXPECTED TO HOLD")
	for _, d := range append(g.Devices, g.onlyRecorded()...) {
		rows = append(rows, showRows(d, g.record)...)
	}
	if len(g.Devices) == 0 {
		lines = append(lines, "  no limit")
	}
	if len(rows) > 1 {
		lines = append(lines, strings.Split(strings.TrimSuffix(cli.Table(rows, right...), "\n"), "\n")...)
	}
	lines = append(lines, g.pacedLines()...)
	if g.Space != nil {
		lines = append(lines, spaceLine(g.Space))
	}
	lines = append(lines, recordLines(g.record)...)
	for _, k := range g.Kept {
		lines = append(lines, "  "+k.String())
	}
	return lines
}

// showRows prints a row for each rate that is bounded, in force or on record.
func showRows(d showDevice, record *target.Record) [][]string {
	var rows [][]string
	device := fmt.Sprintf("%s (%s)", d.Device, d.Number)
	if d.Volume != "" {
		device = fmt.Sprintf("%s (%s, volume %s)", d.Device, d.Number, d.Volume)
	}
	var kept limit.Limit
	if record != nil {
		kept = record.On(d.Number)
	}
	for _, k := range limit.Keys {
		r := d.Limit.Get(k)
		_, bound := r.Number()
		if _, recorded := kept.Get(k).Number(); !bound && !recorded {
			continue
		}
		now := "-"
		if d.Rates != nil && k.IsOps() {
			now = fmt.Sprintf("%.0f ops/s", d.Rates.Get(k))
		} else if d.Rates != nil {
			now = limit.FormatMeasured(d.Rates.Get(k)) + "/s"
		}
		row := []string{"", device, k.Direction(), now, formatBound(r, k)}
		if record != nil && len(record.Limits) > 0 {
			row = append(row, formatBound(kept.Get(k), k))
		}
		switch {
		case d.standing != nil && bound:
			row = append(row, d.standing.Brief(k))
		case bound:
			row = append(row, "not known")
		}
		rows = append(rows, row)
		device = ""
	}
	return rows
}
