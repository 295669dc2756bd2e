package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/prove"
)

// proveNeighbour measures what a limit on one does for another.
func (a *app) proveNeighbour(ctx context.Context, places []prove.Place, f *proveFlags) error {
	asked, err := a.ask(ctx, nil, places, f)
	if err != nil {
		return err
	}
	logical, err := blkdev.New(a.root).LogicalBlock(places[0].Device.Number)
	if err != nil {
		return err
	}
	progress := cli.NewProgress(os.Stderr)
	began := time.Now()
	phases, row, err := a.prover(progress).Neighbours(ctx, places[0], f.window, logical)
	progress.Clear()
	if err != nil {
		return err
	}
	return a.reportProof(report{what: "a neighbour", asked: asked, places: places, rows: []prove.Row{row}, phases: phases, took: time.Since(began)}, f)
}

// printPhases prints what the victim got.
func (a *app) printPhases(r report) {
	table := [][]string{{"READER", "READS/s", "p50", "p99", "LONGEST", "THE LOAD'S " + strings.ToUpper(r.rows[0].Key.Direction()) + "S"}}
	for _, p := range r.phases {
		hog := "–"
		if p.Hog > 0 {
			hog = r.rows[0].Format(p.Hog)
		}
		table = append(table, []string{p.Name, fmt.Sprintf("%.0f", p.Reads), cli.Latency(p.P50), cli.Latency(p.P99), cli.Latency(p.Max), hog})
	}
	a.out.Print("%s", strings.TrimSuffix(cli.Table(table, 1, 2, 3, 4, 5), "\n"))
}

type provePhase struct {
	Name  string  `json:"name"`
	Reads float64 `json:"reads_per_second"`
	P50   float64 `json:"p50_seconds"`
	P99   float64 `json:"p99_seconds"`
	Max   float64 `json:"max_seconds"`
	Hog   float64 `json:"hog"`
}

func phasesOf(all []prove.Phase) []provePhase {
	list := []provePhase{}
	for _, p := range all {
		list = append(list, provePhase{p.Name, p.Reads, p.P50.Seconds(), p.P99.Seconds(), p.Max.Seconds(), p.Hog})
	}
	return list
}
