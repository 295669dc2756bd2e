// Package weir_test holds the rules of the house: who may import whom, who may start
// processes, who may print, and what every package and file must be like. A rule's
// exceptions stand here, with the reason beside each.
package weir_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weir-io/weir/"

// ownName returns the directory of a package of the module: "." for the library at its root.
func ownName(path string) (dir string, ours bool) {
	if path+"/" == module {
		return ".", true
	}
	return strings.CutPrefix(path, module)
}

// layers are the packages of the program, from the bottom up. A package imports from
// lower layers only; those of one layer do not know each other.
var layers = [][]string{
	{"contrib", "docs", "internal/fault", "internal/base/near", "internal/base/peek", "internal/base/plain", "internal/base/rawtext", "internal/base/seats", "internal/base/shape", "internal/base/tool", "internal/base/spare", "internal/base/stack", "internal/base/haste"},
	{"internal/agent/lograte", "internal/agent/tree", "internal/base/background", "internal/linux/bpf", "internal/linux/enter", "internal/base/durable", "internal/limit", "internal/linux/mountinfo", "internal/note", "internal/linux/pagecache", "internal/linux/process", "internal/base/ptytest", "internal/daemon/socket", "internal/daemon/socket/sockettest"},
	{"internal/annotations", "internal/daemon/helper", "internal/linux/bpf/handover", "internal/linux/bpf/refusal"},
	{"internal/daemon/grpc", "internal/daemon/grpc/grpctest", "internal/base/cmdline", "internal/plans", "internal/volumeqos"},
	{"internal/daemon/cri", "internal/plans/planfile"},
	{"internal/linux/blkdev"},
	{"internal/agent/journal", "internal/agent/reconcile"},
	{"internal/linux/cgroupfs", "internal/linux/kernel", "internal/cgconfig", "internal/linux/loopdev"},
	{"internal/linux/cgroupfs/cgrouptest"},
	{"internal/daemon/systemd", "internal/state", "internal/linux/inode", "internal/act/dropin"},
	{"internal/targets", "internal/daemon/systemd/systemdtest", "internal/agent/install", "internal/act/escape", "internal/linux/inode/owners", "internal/linux/partial"},
	{"internal/act/escape/watcher"},
	{"internal/targets/pid", "internal/targets/cgroup", "internal/targets/unit", "internal/targets/engine",
		"internal/targets/containerd", "internal/targets/pod", "internal/targets/vm"},
	{"internal/act/hold", "internal/act/pacer", "internal/look/tally"},
	{"internal/place"},
	{"internal/act/launch", "internal/act/pacer/pacertest", "internal/look/watch", "internal/look/load", "internal/act/scratch", "internal/act/volume", "internal/act/quota", "internal/look/dirty"},
	{"internal/agent/held", "internal/look/history", "internal/look/why"},
	{"internal/host"},
	{"internal/keep", "internal/host/hosttest"},
	{"internal/look/explain"},
	{"internal/look/demo", "internal/act/mend", "internal/look/prove", "internal/look/trace", "internal/limiting"},
	{"internal/act/mend/mending", "internal/look/trace/tracer", "internal/look/latency", "internal/planned", "internal/running", "internal/space"},
	{"internal/agent/source"},
	{"internal/agent"},
	{"internal/self"},
	{"internal/heavy"},
	{"."},
	{"internal/api", "internal/api/apitest"},
	{"internal/ui/cli"},
	{"internal/ui", "internal/ui/plot", "internal/ui/top", "internal/ui/tui", "internal/ui/cli/mantest"},
	{"internal/ui/chart", "internal/ui/top/live"},
	{"internal/ui/text"},
	{"internal/ui/svg", "internal/ui/web"},
	{"internal/agent/health", "internal/agent/kube", "internal/agent/metrics", "internal/agent/nri", "internal/agent/stream"},
	{"internal/agent/routes"},
	{"cmd/weir", "cmd/weird"},
}

// mayExec are the packages that start processes. All others read and write files and
// sockets: a program that is started can be missing, slow, or not what it seems.
var mayExec = map[string]string{
	"internal/base/background": "starts weir itself, as the pacer, its guard, a scope's keeper or a sweep",
	"internal/base/tool":       "runs the programs that others of these name, to their end",
	"internal/act/pacer":       "waits for its guard",
	"internal/agent/install":   "runs groupadd, groupdel and systemctl: each has a great deal of its own to do",
	"internal/daemon/helper":   "starts weir itself, as what loads BPF programs or reads YAML",
	"internal/act/launch":      "runs the command that weir run was given; and waits for a scope's keeper",
	"internal/linux/enter":     "runs a program in its own place",
	"internal/act/scratch":     "runs mkfs.ext4; and weir itself, in a mount namespace of its own",
	"internal/act/volume":      "runs mkfs, and what makes a file system larger",
	"internal/targets/vm":      "runs virsh, which changes a domain's configuration: libvirt's own library is in C",
}

// mayTouchStreams are the files outside internal/ui/cli and cmd that name the process's
// own streams.
var mayTouchStreams = map[string]string{
	"helper.go":                         "hands them to the helper that the process is, and tells on stderr why one failed",
	"internal/act/scratch/namespace.go": "hands them to the weir that runs in the namespace",
}

// fileLines bounds a file: it is about one thing.
const fileLines = 400

// A source is one parsed file.
type source struct {
	path string // "internal/limit/rate.go"
	text string
	file *ast.File
	set  *token.FileSet
}

func (s source) dir() string  { return filepath.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// isProgram reports whether the file is part of weir, and not of what tests or builds it.
func (s source) isProgram() bool {
	return !s.isTest() && (s.dir() == "." || strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "cmd/"))
}

func (s source) at(n ast.Node) string {
	p := s.set.Position(n.Pos())
	return s.path + ":" + strconv.Itoa(p.Line)
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(file) {
			all = append(all, source{path, string(text), file, set})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no sources here")
	}
	return all
}

func TestImportsPointDown(t *testing.T) {
	layer := map[string]int{}
	for i, names := range layers {
		for _, name := range names {
			layer[name] = i
		}
	}
	for _, s := range sources(t) {
		if !s.isProgram() {
			continue
		}
		own, known := layer[s.dir()]
		if !known {
			t.Errorf("%s: package %s has no layer; give it one in this test", s.path, s.dir())
		}
		for _, path := range s.imports() {
			name, ours := ownName(path)
			if !ours {
				continue
			}
			if name == "." && strings.HasPrefix(s.path, "internal/") {
				t.Errorf("%s imports the library, which is for programs", s.path)
			}
			if below, known := layer[name]; !known || below >= own {
				t.Errorf("%s imports %s, which is not below it", s.path, name)
			}
		}
	}
}

func TestOnlyNamedPackagesStartProcesses(t *testing.T) {
	unused := maps.Clone(mayExec)
	for _, s := range sources(t) {
		if !s.isProgram() || !slices.Contains(s.imports(), "os/exec") {
			continue
		}
		if mayExec[s.dir()] == "" {
			t.Errorf("%s imports os/exec; if it must, say why in this test", s.path)
		}
		delete(unused, s.dir())
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "CommandContext" && !slices.Contains(s.imports(), module+"internal/base/tool") {
				t.Errorf("%s: run it with internal/base/tool, which waits for no child of it and bounds what it writes", s.at(n))
			}
			return true
		})
	}
	for name := range unused {
		t.Errorf("%s may start processes, and does not", name)
	}
}

func TestOnlyTheTerminalsPackagesPrint(t *testing.T) {
	unused := maps.Clone(mayTouchStreams)
	for _, s := range sources(t) {
		if !s.isProgram() || strings.HasPrefix(s.path, "internal/ui/cli/") || strings.HasPrefix(s.path, "cmd/") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				pkg, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				stream := pkg.Name == "os" && (n.Sel.Name == "Stdin" || n.Sel.Name == "Stdout" || n.Sel.Name == "Stderr")
				if stream && mayTouchStreams[s.path] != "" {
					delete(unused, s.path)
				} else if stream || pkg.Name == "log" || pkg.Name == "fmt" && strings.HasPrefix(n.Sel.Name, "Print") {
					t.Errorf("%s: %s.%s; what people read goes through internal/ui/cli", s.at(n), pkg.Name, n.Sel.Name)
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
					t.Errorf("%s: %s", s.at(n), f.Name)
				}
			}
			return true
		})
	}
	for path := range unused {
		t.Errorf("%s may name the streams, and does not", path)
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.dir()] = documented[s.dir()] || s.file.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no comment that says what it is", dir)
		}
	}
}

func TestFilesAreAboutOneThing(t *testing.T) {
	for _, s := range sources(t) {
		if n := strings.Count(s.text, "\n"); n > fileLines {
			t.Errorf("%s has %d lines, and %d are the most", s.path, n, fileLines)
		}
	}
}
