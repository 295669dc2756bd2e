// Command bench times whole weir commands against libcgroup's C programs doing the
// same, in pairs that take turns, the CPU time of weir show with 2,000 groups, a hundred
// of them limited, weir prove against fio, and what weir trace adds to a write. It needs
// root, cgroup v1, ext4 in /var/tmp, cgroup-tools, fio, linux-perf and strace, and ends
// with 1 if a bound is not kept. "bench trace [ROUNDS]" measures the traces alone, "bench set"
// weir set alone, and "bench start" what weir's start costs, which needs no root.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// pause lets the kernel come to rest before each command: a move into a v1 group waits
// for a grace period of RCU, unless there was another move just before. In close turns
// one command would always wait, and the other never.
const pause = 50 * time.Millisecond

const (
	pairs      = 101
	showGroups = 2000
	showEvery  = 20 // one group in so many has a limit
	showRuns   = 5

	setBound  = 2.0                    // weir set ÷ cgset
	runBound  = 2.5                    // weir run true ÷ cgexec true
	showBound = 100 * time.Millisecond // CPU time
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == loadWord:
		err = load(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "start":
		err = start(context.Background())
	default:
		err = run(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) (err error) {
	only, rounds := len(args) > 0 && args[0] == "trace", traceRounds
	if only && len(args) > 1 {
		if rounds, err = strconv.Atoi(args[1]); err != nil || rounds < 1 {
			return fmt.Errorf("bench trace %s: write a number of rounds", args[1])
		}
	}
	fs, err := cgroupfs.Open("/")
	if err != nil {
		return err
	}
	defer fs.Close()
	h, err := fs.IO(cgroupfs.V1)
	if err != nil {
		return err
	}
	dev, err := anyDisk()
	if err != nil {
		return err
	}
	top, err := h.Root().Child("weirbench")
	if err != nil {
		return err
	}
	if err := top.Create(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, top.RemoveAll()) }()
	weir, remove, err := installed()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	switch {
	case only:
		return traces(top, rounds)
	case len(args) > 0 && args[0] == "set":
		return sets(weir, dev)
	}
	return errors.Join(
		start(context.Background()),
		sets(weir, dev),
		compare("weir run true ÷ cgexec true", runBound,
			[]string{weir, "run", "true"}, []string{"cgexec", "-g", "blkio:weirbench", "true"}),
		show(top, dev),
		proofs(top),
		traces(top, rounds))
}

func sets(weir string, dev blkdev.Number) error {
	return compare("weir set ÷ cgset", setBound,
		[]string{weir, "set", "-q", "--hold", "kernel", "cgroup:/weirbench", "--write", "10MB/s", "--on", dev.String()}, // as cgset: a rule, and no pacer
		[]string{"cgset", "-r", "blkio.throttle.write_bps_device=" + dev.String() + " 10000000", "weirbench"})
}

func anyDisk() (blkdev.Number, error) {
	chains, _, err := blkdev.New("/").OfMounts(context.Background(), 0)
	if err != nil {
		return blkdev.Number{}, err
	}
	if len(chains) == 0 {
		return blkdev.Number{}, errors.New("no mount is on a block device")
	}
	return chains[0].Devices[0].Number, nil
}

// compare prints the median of the ratios of pairs of runs.
func compare(what string, bound float64, ours, theirs []string) error {
	var ratios, a, b []float64
	for i := range pairs + 5 {
		x, err := timed(ours)
		if err != nil {
			return err
		}
		y, err := timed(theirs)
		if err != nil {
			return err
		}
		if i >= 5 { // the first fill the caches
			ratios, a, b = append(ratios, x/y), append(a, x), append(b, y)
		}
	}
	m := median(ratios)
	fmt.Printf("%-28s %.2f   (medians %.2f ms and %.2f ms, n %d; at most %.1f)\n", what, m, 1e3*median(a), 1e3*median(b), pairs, bound)
	if m > bound {
		return fmt.Errorf("%s is %.2f, more than %.1f", what, m, bound)
	}
	return nil
}

func timed(args []string) (float64, error) {
	time.Sleep(pause)
	began := time.Now()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return time.Since(began).Seconds(), nil
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// show makes the groups, some with a rule, and reads them all.
func show(top cgroupfs.Group, dev blkdev.Number) error {
	for i := range showGroups {
		g, err := top.Child(fmt.Sprintf("g%04d", i))
		if err != nil {
			return err
		}
		if err := g.Create(); err != nil {
			return err
		}
		if i%showEvery != 0 {
			continue
		}
		if err := g.SetRule(dev, limit.Limit{WBPS: limit.PerSecond(1e6)}); err != nil {
			return err
		}
	}
	var cpu []float64
	for range showRuns {
		cmd := exec.Command("./weir", "show", "--json")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("weir show: %w", err)
		}
		if n := strings.Count(string(out), `"cgroup":"`+filepath.Join(top.Path(), "g")); n != showGroups/showEvery {
			return fmt.Errorf("weir show listed %d groups, want %d", n, showGroups/showEvery)
		}
		cpu = append(cpu, cpuOf(cmd))
	}
	m := median(cpu)
	fmt.Printf("%-28s %.0f ms of CPU   (n %d; at most %d)\n", "weir show, 2000 groups", 1e3*m, showRuns, showBound.Milliseconds())
	if m > showBound.Seconds() {
		return fmt.Errorf("weir show takes %.0f ms of CPU, more than %d", 1e3*m, showBound.Milliseconds())
	}
	return nil
}
