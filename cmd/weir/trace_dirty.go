package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dirty"
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/plot"
	"github.com/weir-io/weir/internal/target"
)

// A dirtyReport is what trace --dirty found, before it is printed.
type dirtyReport struct {
	target   *target.Target
	group    *cgroupfs.Group // of memory; nil: none was asked for, or NoGroup
	noGroup  string          // why the target has none
	settings kernel.Dirty
	bounded  []kernel.Bounded
	readings []dirty.Reading
}

// traceDirty watches dirty pages until the window is over or a signal comes.
func (a *app) traceDirty(ctx context.Context, args []string, window time.Duration, svg string) error {
	if window < 100*time.Millisecond || window > traceForMost {
		return cli.Usagef("--for %s: write 100ms to %s", window, traceForMost)
	}
	var r dirtyReport
	if len(args) == 1 {
		t, err := a.target(ctx, args[0])
		if err != nil {
			return err
		}
		r.target = &t
		if r.group, r.noGroup, err = a.memoryGroup(t); err != nil {
			return err
		}
	}
	host := kernel.New(a.root)
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	progress := cli.NewProgress(os.Stderr)
	var err error
	r.readings, r.settings, err = dirty.Watch(ctx, host, r.group, window, func(now dirty.Reading) {
		progress.Show(dirtyText(now.Host)+" dirty on the host", min(1, now.At.Seconds()/window.Seconds()))
	})
	progress.Clear()
	if err == nil {
		r.bounded, err = host.Bounded()
	}
	if err == nil {
		err = a.reportDirty(r, svg)
	}
	var signaled *launch.SignalError
	if err == nil && errors.As(context.Cause(ctx), &signaled) {
		return &cli.StatusError{Status: cli.ExitCode(signaled)}
	}
	return err
}

// memoryGroup is the group of a target in the hierarchy of the memory controller. On v1 that is
// another hierarchy than that of disk I/O; there it is the group of one of the target's
// processes.
func (a *app) memoryGroup(t target.Target) (*cgroupfs.Group, string, error) {
	h := a.fs.With("memory")
	if h == nil {
		return nil, "no mounted cgroup hierarchy has the memory controller", nil
	}
	g := t.Group
	if g.Hierarchy() != h {
		pid := t.Views()[0]
		if pid == 0 {
			return nil, "no process is in " + t.Group.Path() + ", which would tell its memory cgroup", nil
		}
		found, err := a.fs.OfProcess(h, pid)
		if cgroupfs.IsGone(err) {
			return nil, "its process is gone", nil
		}
		if err != nil {
			return nil, "", err
		}
		g = found
	}
	_, there, err := g.Memory()
	switch {
	case err != nil:
		return nil, "", err
	case g.IsRoot():
		return nil, "it is in the root memory cgroup, whose figures are the host's", nil
	case !there:
		return nil, "the memory controller is not enabled for " + g.Path(), nil
	}
	return &g, "", nil
}

// reportDirty prints what was seen, and draws it.
func (a *app) reportDirty(r dirtyReport, svg string) error {
	if a.out.JSON {
		if err := a.out.Document(dirtyDocumentOf(r)); err != nil {
			return err
		}
	} else {
		a.printDirtyPages(r)
	}
	if svg == "" {
		return nil
	}
	var b bytes.Buffer
	if err := plot.Draw(&b, r.title(), r.charts()); err != nil {
		return err
	}
	return os.WriteFile(svg, b.Bytes(), 0o644)
}

// dirtyDocument is weir trace --dirty's JSON (docs/json.md).
type dirtyDocument struct {
	cli.Schema
	Target   *string          `json:"target"`
	Cgroup   *string          `json:"memory_cgroup"`
	Version  int              `json:"memory_cgroup_version"`
	Seconds  float64          `json:"seconds"`
	Settings dirtySettings    `json:"settings"`
	Bounded  []kernel.Bounded `json:"bounded"`
	Host     dirty.Summary    `json:"host"`
	Group    *dirty.Summary   `json:"group"`
	Readings []dirtyReading   `json:"readings"`
	Words    []string         `json:"words"`
}

type dirtySettings struct {
	BackgroundRatio uint64  `json:"dirty_background_ratio"`
	BackgroundBytes uint64  `json:"dirty_background_bytes"`
	Ratio           uint64  `json:"dirty_ratio"`
	Bytes           uint64  `json:"dirty_bytes"`
	Expire          float64 `json:"dirty_expire_seconds"`
	Writeback       float64 `json:"dirty_writeback_seconds"`
}

type dirtyReading struct {
	At    float64      `json:"at_seconds"`
	Host  dirty.Count  `json:"host"`
	Group *dirty.Count `json:"group"`
}

func dirtyDocumentOf(r dirtyReport) dirtyDocument {
	s := r.settings
	doc := dirtyDocument{Schema: cli.SchemaOf("trace.dirty"), Seconds: r.took().Seconds(), Bounded: append([]kernel.Bounded{}, r.bounded...),
		Settings: dirtySettings{s.BackgroundRatio, s.BackgroundBytes, s.Ratio, s.Bytes, s.Expire.Seconds(), s.Writeback.Seconds()},
		Host:     dirty.Host(r.readings), Group: dirty.Group(r.readings), Words: r.words()}
	if r.target != nil {
		name := r.target.String()
		doc.Target = &name
	}
	if r.group != nil {
		path := r.group.Path()
		doc.Cgroup, doc.Version = &path, int(r.group.Hierarchy().Version)
	}
	for _, each := range r.readings {
		doc.Readings = append(doc.Readings, dirtyReading{each.At.Seconds(), each.Host, each.Group})
	}
	return doc
}
