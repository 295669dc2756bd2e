package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/build"
	"github.com/weir-io/weir/lab/internal/cache"
	"github.com/weir-io/weir/lab/internal/calibrate"
	"github.com/weir-io/weir/lab/internal/campaign"
	"github.com/weir-io/weir/lab/internal/kubernetes"
	"github.com/weir-io/weir/lab/internal/matrix"
	"github.com/weir-io/weir/lab/internal/outcome"
	"github.com/weir-io/weir/lab/internal/payload"
	"github.com/weir-io/weir/lab/internal/slots"
	"github.com/weir-io/weir/lab/internal/tempdir"
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
	run, err := tempdir.Make(os.TempDir(), "weir-lab-run-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Remove()) }()
	builds, err := build.Find(ctx, root, o.run)
	if err != nil {
		return err
	}
	l := labRun{options: o, root: root, cacheDir: cacheDir, temp: run.Path, builds: builds}
	lanes, err := newLanes(cacheDir, &l.builds, run.Path, o.memory)
	if err != nil {
		return err
	}
	l.store = lanes.cache
	rows, err := lanes.rows(ctx, o.filter)
	if err != nil {
		return err
	}
	if o.list {
		return list(rows, l.builds)
	}
	return l.do(ctx, lanes, rows)
}

// A labRun is one run, and what its time went to.
type labRun struct {
	options
	root, cacheDir, temp string
	store                *cache.Cache
	builds               build.Builds
	payload              string
	parts                []part
}

// A part of a run takes its time while no guest runs.
type part struct {
	name string
	took time.Duration
}

// timed does a part.
func (l *labRun) timed(name string, do func() error) error {
	began := time.Now()
	err := do()
	l.parts = append(l.parts, part{name, time.Since(began)})
	return err
}

func (l *labRun) do(ctx context.Context, lanes *lanes, rows []matrix.Row) (err error) {
	whole := !l.filter.Narrow() && l.run == ""
	if (!whole || l.filter.All) && !l.filter.Usual {
		if err := os.Setenv(environ.Everywhere, "1"); err != nil {
			return err
		}
	}
	logf("building weir and %d suites", len(l.builds.Suites))
	if err := l.timed("build", func() error { return l.build(ctx) }); err != nil {
		return err
	}
	var machine calibrate.Machine
	if err := l.timed("calibrate", func() error { machine, err = calibrate.Measure(l.temp); return err }); err != nil {
		return err
	}
	logf("%s", machine)
	c, err := l.campaign(ctx, machine, lanes)
	if err != nil {
		return err
	}
	disks, err := tempdir.Make(disksParent(c.Parallel), "weir-lab-disks-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disks.Remove()) }()
	c.Disks = disks.Path
	b := newCompanion(l.beside, l.temp)
	if l.beside != "" {
		c.Beside = b.run
	}
	var guests []outcome.Guest
	if err := l.timed("guests", func() error { guests, err = c.Do(ctx, rows); return err }); err != nil {
		return err
	}
	if err := writeTests(filepath.Join(l.root, "out/lab/tests.log"), guests); err != nil {
		return err
	}
	err = l.report(guests, whole)
	if err == nil && b.failed {
		err = errFailed
	}
	return err
}

// build compiles what guests run, and packs it. Binaries of tests are kept from run to run
// in a folder of this checkout's; only one run at a time writes and reads there.
func (l *labRun) build(ctx context.Context) error {
	kept := filepath.Join(l.cacheDir, "suites", fmt.Sprintf("%x", sha256.Sum256([]byte(l.root)))[:16])
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	lock, err := os.Open(kept)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", kept, err)
	}
	if err := l.builds.Compile(ctx, l.root, l.temp, kept); err != nil {
		return err
	}
	l.payload = filepath.Join(l.temp, "payload.tar")
	order := payload.Order{Suites: l.builds.Suites, Env: passedOn(os.Environ())}
	programs := []string{l.builds.Weir, l.builds.Weird}
	for name := range strings.FieldsFuncSeq(l.with, func(r rune) bool { return r == ',' }) {
		found, err := l.program(ctx, name)
		if err != nil {
			return fmt.Errorf("-with %s: %w", name, err)
		}
		programs = append(programs, found...)
	}
	return payload.Write(ctx, l.payload, programs, order)
}

// program finds one for guests, or builds it.
func (l *labRun) program(ctx context.Context, name string) ([]string, error) {
	if kubernetes.Is(name) {
		logf("building %s, unless it is in the cache: 1 to 16 minutes", name)
		return kubernetes.Build(ctx, l.store, l.root, name)
	}
	path, err := exec.LookPath(name)
	return []string{path}, err
}

// campaign takes what depends on the machine from what was measured of it.
func (l *labRun) campaign(ctx context.Context, machine calibrate.Machine, lanes *lanes) (campaign.Campaign, error) {
	guests := l.parallel
	if guests == 0 {
		guests = withDisks(machine.Guests(memoryAvailable()), machine.Threads, inMemory)
	}
	places, err := slots.Open(filepath.Join(l.cacheDir, "slots"), max(guests, machine.Threads, 2), guests)
	if err != nil {
		return campaign.Campaign{}, err
	}
	convert, err := build.FindConverter(ctx, l.root)
	if err != nil {
		return campaign.Campaign{}, err
	}
	timeout := time.Duration(float64(l.timeout) * machine.Slow())
	logf("guests at once: %d; each may take %s", guests, timeout.Round(time.Second))
	c := campaign.Campaign{
		Out: filepath.Join(l.root, "out/lab"), Temp: l.temp, Builds: l.builds, Convert: convert, Payload: l.payload,
		Run: l.run, Timeout: timeout, Machine: machine, Parallel: guests, Slots: places, Make: lanes.makers(), Log: logf,
	}
	if l.verbose {
		c.Console = func(guest, line string) { logf("%s| %s", guest, line) }
	}
	return c, nil
}

// writeTests keeps every test's verdict, time and figures in a file.
func writeTests(path string, guests []outcome.Guest) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(outcome.WriteTests(f, guests), f.Close())
}

// report prints the table and keeps it in out/lab/times, and judges.
func (l *labRun) report(guests []outcome.Guest, whole bool) error {
	var table strings.Builder
	if err := outcome.WriteTable(&table, guests); err != nil {
		return err
	}
	fmt.Fprintf(&table, "%d guests", len(guests))
	for _, p := range l.parts {
		fmt.Fprintf(&table, ", %s %.0f s", p.name, p.took.Seconds())
	}
	fmt.Fprint(&table, "\n\n")
	if err := outcome.WriteSlowest(&table, guests); err != nil {
		return err
	}
	fmt.Printf("\n%s", &table)
	if err := os.WriteFile(filepath.Join(l.root, "out/lab/times"), []byte(table.String()), 0o644); err != nil {
		return err
	}
	return judge(guests, l.builds.Known, whole)
}

// judge prints what failed, and what never ran.
func judge(guests []outcome.Guest, known []outcome.Known, whole bool) error {
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
