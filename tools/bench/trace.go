package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

const (
	traceRounds    = 9
	bystanderBound = 0.02 // how much more time a write of another process may take
)

// A traced is a way for the load to be traced.
type traced struct {
	name   string
	inside bool     // the load is in the group that weir traces
	weir   bool     // weir traces a group
	empty  bool     // programs that do nothing are where weir's are
	above  []string // else the tracer, which starts the load
	bound  func(loadKind) float64
}

var traceds = []traced{
	{name: "target of weir trace", weir: true, inside: true, bound: func(k loadKind) float64 { return k.bound }},
	{name: "another group is traced", weir: true, bound: func(loadKind) float64 { return bystanderBound }},
	{name: "empty BPF programs there", empty: true},
	{name: "perf trace -s", above: []string{"perf", "trace", "-s", "-o", "/dev/null", "--"}},
	{name: "strace -f -c", above: []string{"strace", "-f", "-c", "-o", "/dev/null", "--"}},
}

// overhead is what a tracer costs one kind of write, by round.
type overhead struct{ elapsed, cpu, ratios, cpuRatios []float64 }

func (o *overhead) add(plain, traced loadResult) {
	o.elapsed, o.cpu = append(o.elapsed, traced.Elapsed), append(o.cpu, traced.CPU)
	o.ratios, o.cpuRatios = append(o.ratios, traced.Elapsed/plain.Elapsed), append(o.cpuRatios, traced.CPU/plain.CPU)
}

// traces measures what a trace adds to the time of a buffered write to ext4, beside perf
// trace and strace, which tell less. Each run with a tracer follows one without, and the
// two are compared.
func traces(top cgroupfs.Group, rounds int) (err error) {
	dir, err := os.MkdirTemp("/var/tmp", "weirbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.EXT4_SUPER_MAGIC {
		return fmt.Errorf("%s: not on ext4 (%w)", dir, err)
	}
	if err := makeOverwritten(dir); err != nil {
		return err
	}
	g, err := top.Child("trace")
	if err != nil {
		return err
	}
	if err := g.Create(); err != nil {
		return err
	}
	plain, sums := make([]overhead, len(loadKinds)), make([][]overhead, len(traceds))
	refused := make([]error, len(traceds))
	for round := range rounds {
		for i := range traceds {
			i = (i + round) % len(traceds)
			if refused[i] != nil {
				continue
			}
			without, err := traced{}.run(g, dir)
			if err != nil {
				return err
			}
			with, err := traceds[i].run(g, dir)
			if err != nil && traceds[i].weir {
				return err
			}
			if refused[i] = err; err != nil {
				continue
			}
			if sums[i] == nil {
				sums[i] = make([]overhead, len(loadKinds))
			}
			for k := range loadKinds {
				plain[k].add(without[k], without[k])
				sums[i][k].add(without[k], with[k])
			}
		}
	}
	return printTraces(plain, sums, refused)
}

// run starts the tracer and the load, and returns what the load saw of each kind.
func (t traced) run(g cgroupfs.Group, dir string) (_ []loadResult, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	args := append(slices.Clone(t.above), self, loadWord, dir)
	cmd := exec.Command(args[0], args[1:]...)
	// perf mounts what it needs: that is to go with it.
	cmd.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	cmd.Stdout, cmd.Stderr = &out, &said
	begin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var w *weirTrace
	if t.inside {
		err = g.AddProcess(cmd.Process.Pid)
	}
	if t.weir && err == nil {
		w, err = startTrace(g)
	}
	var hooks emptyHooks
	if t.empty && err == nil {
		err = hooks.attach()
	}
	err = errors.Join(err, begin.Close()) // the load begins, and ends in any case
	if e := cmd.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("%s: %w: %s", args[0], e, bytes.TrimSpace(said.Bytes())))
	}
	err = errors.Join(err, hooks.end())
	var seen uint64
	if w != nil {
		n, e := w.end()
		seen, err = n, errors.Join(err, e)
	}
	if err != nil {
		return nil, err
	}
	var results []loadResult
	if err := json.Unmarshal(out.Bytes(), &results); err != nil || len(results) != len(loadKinds) {
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, out.Bytes())
	}
	return results, t.check(seen, results)
}

// check refuses figures of a trace that did not see all of the load, or any of another's.
func (t traced) check(seen uint64, results []loadResult) error {
	var writes uint64
	for _, r := range results {
		writes += r.Writes
	}
	if t.inside && seen < writes || !t.inside && seen > 0 {
		return fmt.Errorf("%s: weir saw %d writes, the load did %d", t.name, seen, writes)
	}
	return nil
}

// A weirTrace is weir trace under way.
type weirTrace struct {
	cmd    *exec.Cmd
	stderr io.Reader
	out    bytes.Buffer
	said   bytes.Buffer
}

// startTrace returns when weir says that it traces.
func startTrace(g cgroupfs.Group) (*weirTrace, error) {
	w := &weirTrace{cmd: exec.Command("./weir", "trace", "cgroup:"+g.Path(), "--for", "10m", "--json")}
	w.cmd.Stdout = &w.out
	var err error
	if w.stderr, err = w.cmd.StderrPipe(); err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(w.stderr)
	for lines.Scan() {
		fmt.Fprintln(&w.said, lines.Text())
		if strings.Contains(lines.Text(), "tracing") {
			return w, nil
		}
	}
	return nil, fmt.Errorf("weir trace does not begin: %w: %s", errors.Join(lines.Err(), w.cmd.Wait()), &w.said)
}

// end returns how many writes weir saw.
func (w *weirTrace) end() (uint64, error) {
	err := w.cmd.Process.Signal(unix.SIGINT)
	_, copied := io.Copy(&w.said, w.stderr)
	if err := errors.Join(err, copied, w.cmd.Wait()); err != nil {
		return 0, fmt.Errorf("weir trace: %w: %s", err, &w.said)
	}
	var doc struct {
		Operations []struct {
			Kind  string
			Count uint64
		}
	}
	if err := json.Unmarshal(w.out.Bytes(), &doc); err != nil {
		return 0, fmt.Errorf("weir trace: %w: %s", err, &w.out)
	}
	for _, o := range doc.Operations {
		if o.Kind == "write" {
			return o.Count, nil
		}
	}
	return 0, nil
}
