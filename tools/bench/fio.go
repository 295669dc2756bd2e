package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	proofRuns  = 5
	proofRate  = 20_000_000 // bytes per second, for both
	proofBound = 0.03       // what the rates may differ by
)

// A proof is one kind of I/O, as weir prove and as fio name it.
type proof struct {
	path, direction string
	fio             []string
}

// proofs measures the same limit with weir prove and with fio, in turns, and compares
// the rates that both saw and the CPU time of both commands.
func proofs(top cgroupfs.Group) (err error) {
	dir, err := os.MkdirTemp("/var/tmp", "weirbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	chain, err := blkdev.New("/").Resolve(context.Background(), dir)
	if err != nil {
		return err
	}
	g, err := top.Child("fio")
	if err != nil {
		return err
	}
	if err := g.Create(); err != nil {
		return err
	}
	if err := g.SetRule(chain.Devices[0].Number, limit.Limit{RBPS: limit.PerSecond(proofRate), WBPS: limit.PerSecond(proofRate)}); err != nil {
		return err
	}
	for _, p := range []proof{
		{"direct", "write", []string{"--rw=write", "--direct=1"}},
		{"direct", "read", []string{"--rw=read", "--direct=1"}},
		{"sync", "write", []string{"--rw=write", "--sync=dsync"}},
	} {
		if err := p.compare(g, dir); err != nil {
			return err
		}
	}
	return nil
}

func (p proof) compare(g cgroupfs.Group, dir string) error {
	var ratios, ours, theirs []float64
	for range proofRuns {
		rate, block, cpu, err := p.weir(dir)
		if err != nil {
			return err
		}
		other, otherCPU, err := p.withFio(g, dir, block)
		if err != nil {
			return err
		}
		ratios, ours, theirs = append(ratios, rate/other), append(ours, cpu), append(theirs, otherCPU)
	}
	ratio, ownCPU, fioCPU := median(ratios), median(ours), median(theirs)
	fmt.Printf("%-28s %.3f  (rates, n %d; 1 ± %.2f); CPU %.0f ms and %.0f ms\n",
		"weir prove ÷ fio, "+p.path+" "+p.direction, ratio, proofRuns, proofBound, 1e3*ownCPU, 1e3*fioCPU)
	switch {
	case ratio < 1-proofBound || ratio > 1+proofBound:
		return fmt.Errorf("weir prove and fio see rates of %s %ss that differ by %.1f %%", p.path, p.direction, 100*(ratio-1))
	case ownCPU > fioCPU:
		return fmt.Errorf("weir prove takes %.0f ms of CPU for %s %ss, more than fio's %.0f ms", 1e3*ownCPU, p.path, p.direction, 1e3*fioCPU)
	}
	return nil
}

// weir returns the rate that prove's writer or reader saw, the size of its operations,
// and the command's CPU time in seconds.
func (p proof) weir(dir string) (rate float64, block int, cpu float64, err error) {
	cmd := exec.Command("./weir", "prove", "--quiet", "--json", "--"+p.direction, fmt.Sprint(proofRate), "--paths", p.path, "--for", "3s", "--on", dir)
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, 0, fmt.Errorf("weir prove: %w: %s", err, out)
	}
	var doc struct {
		Rows []struct {
			Writer struct{ Rate float64 }
			Block  int `json:"block_bytes"`
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Rows) != 1 {
		return 0, 0, 0, fmt.Errorf("weir prove: %w: %s", err, out)
	}
	return doc.Rows[0].Writer.Rate, doc.Rows[0].Block, cpuOf(cmd), nil
}

// withFio returns the same of fio, which runs in a group with the limit.
func (p proof) withFio(g cgroupfs.Group, dir string, block int) (rate, cpu float64, err error) {
	file := filepath.Join(dir, "fio")
	cmd := exec.Command("cgexec", append([]string{"-g", "blkio:" + g.Path(), "fio", "--name=" + p.direction, "--filename=" + file, "--size=64M", fmt.Sprint("--bs=", block),
		"--time_based", "--ramp_time=500ms", "--runtime=3", "--thread", "--output-format=json"}, p.fio...)...)
	out, err := cmd.Output()
	if err != nil {
		return 0, 0, fmt.Errorf("fio (apt-get install fio): %w: %s", err, out)
	}
	type side struct {
		Rate float64 `json:"bw_bytes"`
	}
	var doc struct{ Jobs []struct{ Read, Write side } }
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Jobs) != 1 {
		return 0, 0, fmt.Errorf("fio: %w: %s", err, out)
	}
	if p.direction == "read" {
		return doc.Jobs[0].Read.Rate, cpuOf(cmd), nil
	}
	return doc.Jobs[0].Write.Rate, cpuOf(cmd), nil
}

// cpuOf is the CPU time of a command that has ended, and of its children, in seconds.
func cpuOf(cmd *exec.Cmd) float64 {
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}
