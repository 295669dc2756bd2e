// Package build compiles what guests run: weir, weird, the lab's init, and the test
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
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/lab/internal/guest"
	"github.com/weir-io/weir/lab/internal/outcome"
)

// Patterns are the packages whose tests run in guests.
func Patterns() []string {
	return []string{"./lab/tests/...", "./cmd/weir", "./internal/act/hold", "./internal/cgconfig"}
}

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
	Weird  string
	Init   string
	Suites []guest.Suite   // those that have a test to run
	Known  []outcome.Known // their tests
}

// Find finds the suites of root, the module's folder, that have a test which run selects
// (go test's -run; empty selects all), and their tests. It compiles nothing.
func Find(ctx context.Context, root, run string) (Builds, error) {
	var b Builds
	packages, err := testPackages(ctx, root)
	if err != nil {
		return b, err
	}
	selected := selector(run)
	for _, p := range packages {
		names, err := testNames(p.dir, p.files)
		if err != nil {
			return b, fmt.Errorf("list tests of %s: %w", p.path, err)
		}
		if !slices.ContainsFunc(names, selected) {
			continue
		}
		b.Suites = append(b.Suites, guest.Suite{Package: p.path, Name: suiteName(p.path), Dir: p.dir})
		for _, name := range names {
			b.Known = append(b.Known, outcome.Known{Package: p.path, Name: name})
		}
	}
	if len(b.Suites) == 0 {
		return b, fmt.Errorf("find tests: none matches -run %q; see -list", run)
	}
	inOrder(b.Suites)
	return b, nil
}

// Compile builds weir, weird and the guests' init into dir, and the suites' binaries into kept,
// a folder that outlives the run: what go finds there up to date it does not link again.
func (b *Builds) Compile(ctx context.Context, root, dir, kept string) error {
	b.Weir, b.Weird, b.Init = filepath.Join(dir, "weir"), filepath.Join(dir, "weird"), filepath.Join(dir, "guestinit")
	// Without paths and build identifiers the same source gives the same file, and the
	// images that hold it can be cached.
	if _, err := goTool(ctx, root, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", dir, "./cmd/weir", "./cmd/weird", "./lab/internal/guestinit"); err != nil {
		return err
	}
	args := []string{"test", "-c", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", kept + "/"}
	for i, s := range b.Suites {
		args = append(args, s.Package)
		b.Suites[i].Binary = filepath.Join(kept, path.Base(s.Package)+".test")
	}
	_, err := goTool(ctx, root, args...)
	return err
}

// A testPackage is one of Patterns that has tests.
type testPackage struct {
	path, dir string
	files     []string // names of those with tests
}

// testPackages lists them.
func testPackages(ctx context.Context, root string) ([]testPackage, error) {
	const format = `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}|{{.Dir}}|{{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}{{end}}`
	out, err := goTool(ctx, root, append([]string{"list", "-f", format}, Patterns()...)...)
	if err != nil {
		return nil, err
	}
	var packages []testPackage
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) != 3 {
			continue // it has none
		}
		packages = append(packages, testPackage{fields[0], fields[1], strings.Fields(fields[2])})
	}
	return packages, nil
}

// suiteName makes "lab-tests-smoke" of ".../weir/lab/tests/smoke".
func suiteName(pkg string) string {
	_, after, ok := strings.Cut(pkg, "/weir/")
	if !ok {
		after = pkg
	}
	return strings.ReplaceAll(after, "/", "-")
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
