// Package build compiles what guests run: weir, the lab's init, and the test
// binaries, all static.
package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/lab/guest"
	"github.com/weir-io/weir/lab/outcome"
)

// Patterns are the packages whose tests run in guests.
func Patterns() []string { return []string{"./lab/tests/...", "./cmd/weir", "./internal/hold"} }

// beside are the suites whose tests keep to their own disks and groups, so that two of
// them can run at once. The longest come first. The others look at everything that is in
// a guest, or at rates that take its processor, or at writers that its memory is to be
// there for.
var beside = []string{"lab-tests-systemd", "lab-tests-full", "cmd-weir"}

// last is the suite that boots the machine again, and starts what nobody else expects.
const last = "lab-tests-boot"

// inOrder puts the suites that run beside others first.
func inOrder(suites []guest.Suite) {
	place := func(s guest.Suite) int {
		if i := slices.Index(beside, s.Name); i >= 0 {
			return i
		}
		if s.Name == last {
			return len(beside) + 1
		}
		return len(beside)
	}
	slices.SortStableFunc(suites, func(a, b guest.Suite) int { return cmp.Compare(place(a), place(b)) })
	for i := range suites {
		suites[i].Beside = place(suites[i]) < len(beside)
	}
}

// Builds are the files, below one folder.
type Builds struct {
	Weir   string
	Init   string
	Suites []guest.Suite
	Known  []outcome.Known // the tests that the binaries list
}

// All builds everything in root, the module's folder, into dir.
func All(ctx context.Context, root, dir string) (Builds, error) {
	b := Builds{Weir: filepath.Join(dir, "weir"), Init: filepath.Join(dir, "guestinit")}
	if _, err := os.Stat(filepath.Join(root, "cmd/weir")); err != nil {
		return b, fmt.Errorf("build weir: %w", err)
	}
	for _, c := range []struct{ pkg, out string }{{"./cmd/weir", b.Weir}, {"./lab/guestinit", b.Init}} {
		// Without paths and build identifiers the same source gives the same file,
		// and the images that hold it can be cached.
		if _, err := goTool(ctx, root, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", c.out, c.pkg); err != nil {
			return b, err
		}
	}
	suites, err := testPackages(ctx, root)
	if err != nil {
		return b, err
	}
	for _, s := range suites {
		s.Binary = filepath.Join(dir, s.Name+".test")
		if _, err := goTool(ctx, root, "test", "-c", "-buildvcs=false", "-ldflags=-s -w", "-o", s.Binary, s.Package); err != nil {
			return b, err
		}
		names, err := list(ctx, s)
		if err != nil {
			return b, err
		}
		for _, name := range names {
			b.Known = append(b.Known, outcome.Known{Package: s.Package, Name: name})
		}
		b.Suites = append(b.Suites, s)
	}
	return b, nil
}

// testPackages lists those of Patterns that have tests.
func testPackages(ctx context.Context, root string) ([]guest.Suite, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}`
	out, err := goTool(ctx, root, append([]string{"list", "-f", format}, Patterns()...)...)
	if err != nil {
		return nil, err
	}
	var suites []guest.Suite
	for line := range strings.Lines(out) {
		pkg, dir, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		suites = append(suites, guest.Suite{Package: pkg, Name: suiteName(pkg), Dir: dir})
	}
	inOrder(suites)
	return suites, nil
}

// suiteName makes "lab-tests-smoke" of ".../weir/lab/tests/smoke".
func suiteName(pkg string) string {
	_, after, ok := strings.Cut(pkg, "/weir/")
	if !ok {
		after = pkg
	}
	return strings.ReplaceAll(after, "/", "-")
}

// list asks a binary for its tests. Fuzz targets and examples run their seeds as
// tests and are listed too; benchmarks are not.
func list(ctx context.Context, s guest.Suite) ([]string, error) {
	cmd := exec.CommandContext(ctx, s.Binary, "-test.list=.")
	cmd.Dir = s.Dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list tests of %s: %w", s.Package, err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		name := strings.TrimSpace(line)
		if name != "" && !strings.HasPrefix(name, "Benchmark") {
			names = append(names, name)
		}
	}
	return names, nil
}

// Events converts what a test binary printed with -test.v=test2json.
func Events(ctx context.Context, root string, log []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t") // -t: with the time that each test took
	cmd.Dir = root
	cmd.Stdin = bytes.NewReader(log)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("test2json: %w", err)
	}
	return out, nil
}

func goTool(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		return "", errors.Join(fmt.Errorf("go %s: %w", strings.Join(args, " "), err), errors.New(text))
	}
	return stdout.String(), nil
}
