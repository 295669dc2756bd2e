// Package campaign runs the matrix: it makes a guest of each row, runs a few of
// them at a time, and collects what became of them.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-io/weir/lab/internal/build"
	"github.com/weir-io/weir/lab/internal/calibrate"
	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/matrix"
	"github.com/weir-io/weir/lab/internal/outcome"
	"github.com/weir-io/weir/lab/internal/process"
	"github.com/weir-io/weir/lab/internal/slots"
	"github.com/weir-io/weir/lab/internal/tempdir"
)

// Maker makes the guest of a row: it finds or builds what the guest boots.
type Maker func(ctx context.Context, row matrix.Row) (guest.Guest, error)

// Campaign is one run.
type Campaign struct {
	Out      string // gets a folder for each guest
	Temp     string // for what the native lane leaves to nobody
	Disks    string // for the guests'
	Builds   build.Builds
	Convert  build.Converter
	Payload  string
	Run      string
	Timeout  time.Duration // of each guest; of a slow one, twice
	Machine  calibrate.Machine
	Parallel int
	Slots    slots.Slots      // shared with other runs on this machine
	Make     map[string]Maker // by lane; a lane without one is left out
	Log      func(format string, args ...any)
	Console  func(guest, line string) // what guests print; may be nil
	// Beside measures nothing, and runs in the time that guests leave, on such a processor: before those
	// that run alone begin; or before all, if guests leave none. May be nil.
	Beside func(ctx context.Context, cpu int)

	alone bool // each guest has the machine for itself
}

// Do runs the rows. The error is about the campaign; what is wrong with a guest
// is in its outcome. Spare rows run one after another, in the time that the others leave.
// Rows of the native lane run alone, after the others, because they measure on the machine
// that carries all; and so do emulated ones that measure rates. Tests that were red for what
// they measured are measured once more at the end, alone.
func (c Campaign) Do(ctx context.Context, rows []matrix.Row) ([]outcome.Guest, error) {
	guests := make([]outcome.Guest, len(rows))
	slots := make(chan struct{}, max(c.Parallel, 1))
	var wait sync.WaitGroup
	var alone, spare []int
	for i, row := range rows {
		switch {
		case row.Lane == matrix.Native, c.emulatesRates(row):
			alone = append(alone, i)
		case c.spare(row):
			spare = append(spare, i)
		}
	}
	if c.Beside != nil && !c.Machine.Spare() {
		c.Beside(ctx, process.All)
	}
	wait.Go(func() {
		if c.Beside != nil && c.Machine.Spare() {
			c.beside(ctx)
		}
		for _, i := range spare {
			guests[i] = c.one(ctx, rows[i])
		}
	})
	for i, row := range rows {
		if slices.Contains(alone, i) || slices.Contains(spare, i) {
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			guests[i] = c.one(ctx, row)
		})
	}
	wait.Wait()
	for _, i := range alone {
		guests[i] = c.one(ctx, rows[i])
	}
	for i, row := range rows {
		c.again(ctx, row, &guests[i])
	}
	return guests, ctx.Err()
}

// beside has the slot of what takes only the time that others leave.
func (c Campaign) beside(ctx context.Context) {
	release, err := c.Slots.TakeSpare(ctx)
	if err != nil {
		return // the run has ended
	}
	defer release()
	c.Beside(ctx, process.Spare)
}

// one makes and runs a guest. Its folder stays if anything went wrong.
func (c Campaign) one(ctx context.Context, row matrix.Row) outcome.Guest {
	g := outcome.Guest{Name: row.Name()}
	if err := ctx.Err(); err != nil {
		g.Err = err
		return g
	}
	began := time.Now()
	machine, err := c.Make[row.Lane](ctx, row)
	if err != nil {
		g.Err = err
		c.report(g)
		return g
	}
	g.Name, g.Times.Install = machine.Name(), time.Since(began).Seconds()
	// Another run of the lab may have a guest of this name at the same time.
	dir, err := makeFolder(c.Out)
	if err != nil {
		g.Err = err
		return g
	}
	job := guest.Job{
		Payload: c.Payload, Suites: c.Builds.Suites, Weir: c.Builds.Weir,
		Run: c.Run, Short: row.Short, Dir: dir.Path, Temp: c.Disks, Timeout: row.Timeout(c.Timeout),
		Only: c.only(row), Slow: c.Machine.Slow(), Piece: c.Machine.Compute,
	}
	if row.Lane == matrix.Native { // it measures disks, and not memory
		job.Temp = c.Temp
	}
	if c.Console != nil {
		job.Log = func(line string) { c.Console(g.Name, line) }
	}
	began = time.Now()
	release, err := c.place(ctx, row, g.Name, &job)
	g.Times.Wait = time.Since(began).Seconds()
	if err != nil {
		g.Err = err
		return g
	}
	result, err := machine.Run(ctx, job)
	release()
	g.Err = err
	g.Times.Boot = result.Boot.Seconds()
	g.Times.Tests = (result.Total - result.Boot).Seconds()
	g.Times.Busy = result.Busy.Seconds()
	for _, o := range result.Outputs {
		c.collect(ctx, &g, o)
	}
	g.Err = errors.Join(g.Err, keep(dir, filepath.Join(c.Out, g.Name), g.Bad()))
	c.report(g)
	return g
}

// again runs the tests of a guest that are red and hang on what they measured once more, in a
// fresh guest with nothing beside it. Who named the tests to run does that by hand.
func (c Campaign) again(ctx context.Context, row matrix.Row, g *outcome.Guest) {
	names := g.ToMeasureAgain()
	if len(names) == 0 || c.Run != "" {
		return
	}
	c.Log("%-28s measures again, alone: %s", g.Name, strings.Join(names, ", "))
	c.alone, c.Run, c.Out = true, "^("+strings.Join(names, "|")+")$", filepath.Join(c.Out, "again")
	g.MeasuredAgain(c.one(ctx, row))
}

// place waits for a row's place on this machine, and sets the processor that the job gets.
func (c Campaign) place(ctx context.Context, row matrix.Row, name string, job *guest.Job) (release func(), err error) {
	tell := time.AfterFunc(5*time.Second, func() {
		c.Log("%-28s waits: other runs of the lab have the machine", name)
	})
	defer tell.Stop()
	switch {
	case row.Lane == matrix.Native:
		return c.Slots.TakeAll(ctx)
	case c.alone:
		if job.CPU = c.Machine.Place(0, 1); row.Lane == matrix.QEMU {
			job.CPU = process.All
		}
		return c.Slots.TakeAll(ctx)
	case c.emulatesRates(row):
		job.CPU = process.All
		return c.Slots.TakeAll(ctx)
	case c.spare(row):
		job.CPU = process.Spare
		return c.Slots.TakeSpare(ctx)
	}
	slot, release, err := c.Slots.Take(ctx)
	job.CPU = c.Machine.Place(slot, c.Parallel)
	return release, err
}

// only lists what a row's tests must ask for, if not all of them run there. Who names
// tests means them.
func (c Campaign) only(row matrix.Row) []string {
	if row.Only == "" || c.Run != "" {
		return nil
	}
	return strings.Split(row.Only, ",")
}

// spare reports whether a row runs in the time that others leave, if they leave any. Tests
// that are named may be any.
func (c Campaign) spare(row matrix.Row) bool { return row.Spare && c.Run == "" && c.Machine.Spare() }

// emulatesRates reports whether a row measures on an emulated processor, which is as busy
// with that as one of this machine can be: it gets the others too, and runs alone.
func (c Campaign) emulatesRates(row matrix.Row) bool {
	return row.Lane == matrix.QEMU && row.Only == "" && c.Run == ""
}

func makeFolder(out string) (*tempdir.Dir, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	return tempdir.Make(out, ".guest-")
}

// keep puts the folder of a guest that went bad in the place that the report
// names; a good guest's folder goes away, and so does what an older run left.
func keep(dir *tempdir.Dir, place string, bad bool) error {
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	if !bad {
		return dir.Remove()
	}
	return dir.Keep(place)
}

// collect adds one test binary's tests. A binary that ended badly without a
// failed test (a panic outside tests, an exit) makes the guest bad.
func (c Campaign) collect(ctx context.Context, g *outcome.Guest, o guest.Output) {
	events, err := c.Convert.Events(ctx, o.Log)
	if err != nil {
		g.Err = errors.Join(g.Err, err)
		return
	}
	g.Suites = append(g.Suites, outcome.Suite{Package: o.Package, Seconds: o.Seconds})
	tests, output, err := outcome.Read(o.Package, events)
	if err != nil {
		g.Err = errors.Join(g.Err, err)
		return
	}
	g.Tests = append(g.Tests, tests...)
	if o.Ended && o.Exit == 0 {
		return
	}
	g.Output += output
	if o.Ended && !g.Bad() {
		g.Err = fmt.Errorf("%s: exit status %d", o.Package, o.Exit)
	}
}

func (c Campaign) report(g outcome.Guest) {
	state := "ok"
	if g.Bad() {
		state = "FAILED"
	}
	c.Log("%-28s %-6s %3d passed %3d failed %3d skipped %6.1fs", g.Name, state,
		g.Count(outcome.Passed), g.Count(outcome.Failed)+g.Count(outcome.Broken), g.Count(outcome.Skipped), g.Times.Boot+g.Times.Tests)
}

// Describe says in one text what ran nowhere, empty when all ran.
func Describe(missed []outcome.Missed) string {
	var b strings.Builder
	for _, m := range missed {
		reason := "not even tried"
		if len(m.Reasons) > 0 {
			reason = strings.Join(m.Reasons, "; ")
		}
		fmt.Fprintf(&b, "%s %s: %s\n", m.Package, m.Name, reason)
	}
	return b.String()
}
