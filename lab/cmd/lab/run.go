package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-io/weir/lab/build"
	"github.com/weir-io/weir/lab/cache"
	"github.com/weir-io/weir/lab/campaign"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/matrix"
	"github.com/weir-io/weir/lab/outcome"
	"github.com/weir-io/weir/lab/payload"
	"github.com/weir-io/weir/lab/slots"
	"github.com/weir-io/weir/lab/tempdir"
)

// errFailed means that the run went as it should, and its report tells the rest.
var errFailed = errors.New("tests failed")

func lab(ctx context.Context, o options) (err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	cacheDir, err := cache.Dir()
	if err != nil {
		return err
	}
	store, err := cache.Open(filepath.Join(cacheDir, "built"))
	if err != nil {
		return err
	}
	run, err := tempdir.Make(os.TempDir(), "weir-lab-run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Remove()) }()
	temp := run.Path
	disks, err := tempdir.Make(disksParent(), "weir-lab-disks-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disks.Remove()) }()
	logf("building weir and the tests")
	builds, err := build.All(ctx, root, temp)
	if err != nil {
		return err
	}
	lanes, err := newLanes(cacheDir, store, builds, temp, o.memory)
	if err != nil {
		return err
	}
	rows, err := lanes.rows(ctx, o.filter)
	if err != nil {
		return err
	}
	if o.list {
		return list(rows, builds)
	}
	whole := !o.filter.Narrow() && o.run == ""
	if !whole || o.filter.All {
		if err := os.Setenv(environ.Everywhere, "1"); err != nil {
			return err
		}
	}
	order := payload.Order{Suites: builds.Suites, Env: passedOn(os.Environ())}
	tarFile := filepath.Join(temp, "payload.tar")
	if err := payload.Write(ctx, tarFile, builds.Weir, order); err != nil {
		return err
	}
	places, err := slots.Open(filepath.Join(cacheDir, "slots"), o.parallel)
	if err != nil {
		return err
	}
	c := campaign.Campaign{
		Root: root, Out: filepath.Join(root, "out/lab"), Temp: temp, Disks: disks.Path, Builds: builds, Payload: tarFile,
		Run: o.run, Timeout: o.timeout, Parallel: o.parallel, Slots: places, Make: lanes.makers(), Log: logf,
	}
	if o.verbose {
		c.Console = func(guest, line string) { logf("%s| %s", guest, line) }
	}
	began := time.Now()
	guests, err := c.Do(ctx, rows)
	if err != nil {
		return err
	}
	if err := writeTests(filepath.Join(root, "out/lab/tests.log"), guests); err != nil {
		return err
	}
	return report(guests, builds.Known, whole, time.Since(began))
}

// writeTests keeps every test's verdict, time and figures in a file.
func writeTests(path string, guests []outcome.Guest) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(outcome.WriteTests(f, guests), f.Close())
}

// report prints the table, what failed, and what never ran.
func report(guests []outcome.Guest, known []outcome.Known, whole bool, took time.Duration) error {
	fmt.Println()
	if err := outcome.WriteTable(os.Stdout, guests); err != nil {
		return err
	}
	fmt.Printf("%d guests in %.0f s\n", len(guests), took.Seconds())
	if err := outcome.WriteFailures(os.Stdout, guests); err != nil {
		return err
	}
	var result error
	for _, g := range guests {
		if g.Bad() {
			fmt.Printf("\n%s failed: see out/lab/%s\n", g.Name, g.Name)
			result = errFailed
		}
	}
	if !whole {
		return result
	}
	if text := campaign.Describe(outcome.NeverRan(known, guests)); text != "" {
		fmt.Printf("\nThese tests ran on no guest, which is an error in a whole run:\n%s", text)
		result = errFailed
	}
	return result
}

func list(rows []matrix.Row, builds build.Builds) error {
	for _, r := range rows {
		fmt.Println(r.Name())
	}
	fmt.Println()
	for _, k := range builds.Known {
		fmt.Println(k.Package, k.Name)
	}
	return nil
}

// passedOn are the variables by which targets of the Makefile steer tests.
func passedOn(env []string) []string {
	var names []string
	for _, e := range env {
		if strings.HasPrefix(e, "WEIR_") && !strings.HasPrefix(e, environ.Variable+"=") {
			names = append(names, e)
		}
	}
	return names
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
