package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What weir's start may cost: the initialisers of its packages, divided by those of an empty
// program that links net and encoding/json. Both run the runtime's own, and under the same load.
// Most of it is page faults: the initialisers are all over the program. So both programs are
// copied first; see installed.
const (
	startRuns  = 15
	startBound = 2.0
)

// emptyProgram is what the start is compared with.
const emptyProgram = `package main

import (
	_ "encoding/json"
	_ "net"
)

func main() {}
`

// initLine is what the runtime prints of one package (GODEBUG=inittrace=1).
var initLine = regexp.MustCompile(`(?m)^init (\S+) @\S+ ms, (\S+) ms clock, `)

// start compares the initialisers in pairs of runs that take turns, and names the packages that
// cost most if the bound is not kept.
func start(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := buildEmpty(ctx, dir); err != nil {
		return err
	}
	program, empty := filepath.Join(dir, "weir"), filepath.Join(dir, "none")
	if err := errors.Join(copyProgram("weir", program), copyProgram(filepath.Join(dir, "empty"), empty)); err != nil {
		return err
	}
	var ours, theirs []float64
	each := map[string][]float64{}
	for range startRuns {
		weir, err := initialisers(ctx, program, "version")
		if err != nil {
			return err
		}
		none, err := initialisers(ctx, empty)
		if err != nil {
			return err
		}
		for name, ms := range weir {
			each[name] = append(each[name], ms)
		}
		ours, theirs = append(ours, sum(weir)), append(theirs, sum(none))
	}
	a, b := median(ours), median(theirs)
	fmt.Printf("%-28s %.2f   (medians %.2f ms and %.2f ms, n %d; at most %.1f)\n", "weir's start ÷ an empty one", a/b, a, b, startRuns, startBound)
	if a/b > startBound {
		return fmt.Errorf("weir's start is %.2f of an empty program's, more than %.1f; most takes %s", a/b, startBound, mostOf(each))
	}
	return nil
}

// copyProgram writes a program anew.
func copyProgram(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}

// buildEmpty builds the empty program as dir/empty.
func buildEmpty(ctx context.Context, dir string) error {
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "main.go"), []byte(emptyProgram), 0o600), os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module empty\n\ngo 1.26.0\n"), 0o600)); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", "empty", ".")
	build.Dir, build.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build an empty program: %w: %s", err, out)
	}
	return nil
}

// initialisers returns what the initialisers of each package of a program take, in milliseconds.
func initialisers(ctx context.Context, program string, args ...string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var traced bytes.Buffer
	cmd.Stderr = &traced
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", program, err, traced.Bytes())
	}
	took := map[string]float64{}
	for _, m := range initLine.FindAllStringSubmatch(traced.String(), -1) {
		ms, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %q: %w", program, m[0], err)
		}
		took[m[1]] += ms
	}
	if len(took) == 0 {
		return nil, fmt.Errorf("%s traces no initialisers", program)
	}
	return took, nil
}

func sum(took map[string]float64) (total float64) {
	for _, ms := range took {
		total += ms
	}
	return total
}

// mostNamed is how many packages are named.
const mostNamed = 6

// mostOf names the packages whose initialisers take longest.
func mostOf(each map[string][]float64) string {
	names := slices.SortedFunc(maps.Keys(each), func(a, b string) int { return cmp.Compare(median(each[b]), median(each[a])) })
	var text []string
	for _, name := range names[:min(len(names), mostNamed)] {
		text = append(text, fmt.Sprintf("%s %.3f ms", name, median(each[name])))
	}
	return strings.Join(text, ", ")
}
