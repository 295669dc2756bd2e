package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weir-io/weir/internal/heavy"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/self"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/inherit"
)

// nobody is the user without rights that scripts run weir as.
const nobody = 65534

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"weir":   func() { os.Exit(run(heavy.Roles(cli.Version(version)))) },
		"exe":    func() { os.Exit(run(heavy.Roles(cli.Version(version)))) }, // weir starts itself as /proc/self/exe
		"alone":  func() { os.Exit(run(self.InWeird(os.Environ()))) },        // weir where there is no weird
		"nobody": asNobody,
		"inside": inside,
	})
}

// asNobody runs weir as a user without rights: "nobody weir run …". It does not
// execute anything, because that user may not reach the test's binary.
func asNobody() {
	if os.Geteuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
			fmt.Fprintln(os.Stderr, "nobody:", err)
			os.Exit(1)
		}
	}
	os.Args = os.Args[1:]
	os.Exit(run(heavy.Roles(cli.Version(version))))
}

// TestScripts runs testdata/script. Scripts get copies of the hosts of package hosttest
// as $WORK/v1 and so on: trees for --root, which weir reads and never writes.
func TestScripts(t *testing.T) {
	lab.Unit(t)
	runScripts(t, testscript.Params{Dir: "testdata/script", Setup: func(env *testscript.Env) error { return hosttest.MakeAll(env.WorkDir) }})
}

// TestLabScripts runs testdata/lab: scripts that make real groups. They get an
// empty disk $DISK, and the mount points of all hierarchies as $CGROUPS.
func TestLabScripts(t *testing.T) {
	cgroups := lab.Need(t, lab.Root, lab.Rates, lab.Newest).Cgroups
	t.Parallel()
	disk := lab.RawDisk(t)
	runScripts(t, testscript.Params{Dir: "testdata/lab", Setup: func(env *testscript.Env) error {
		env.Setenv("DISK", disk.Node)
		env.Setenv("CGROUPS", strings.TrimSpace(strings.Join(append(cgroups.Mounted1, cgroups.Unified), " ")))
		return makeExecutable(env.WorkDir, "stay", "answer", "sleeper", "nest", "garbage", "delegate", "feign")
	}})
}

// makeExecutable makes programs of those files of a script that there are: txtar has
// no modes.
func makeExecutable(work string, names ...string) error {
	for _, name := range names {
		if err := os.Chmod(filepath.Join(work, name), 0o755); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// runScripts runs scripts. Their conditions are [v1] and [v2], where the io controller
// is, [memory], [memory2] in v2, [systemd], [systemd254] or later, and [root].
func runScripts(t *testing.T, params testscript.Params) {
	cgroups, err := environ.FindCgroups()
	if err != nil {
		t.Fatal(err)
	}
	inherit.Plain() // scripts send signals, and have files that nobody may read
	_, err = os.Stat("/run/systemd/system")
	conditions := map[string]bool{
		"v1": cgroups.Blkio != "", "v2": cgroups.IOInV2, "memory": cgroups.Memory != "" || cgroups.MemInV2, "memory2": cgroups.MemInV2,
		"systemd": err == nil, "systemd254": err == nil && systemdVersion(t) >= 254, "root": os.Geteuid() == 0,
	}
	params.RequireExplicitExec = true
	params.UpdateScripts = os.Getenv("WEIR_UPDATE_SCRIPTS") != ""
	params.Condition = func(name string) (bool, error) {
		holds, known := conditions[name]
		if !known {
			return false, errors.New("no such condition")
		}
		return holds, nil
	}
	params.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exitcode": exitCode,
		"proves":   proves,
		"replace":  replaceText,
		"until":    until,
		"copies":   copies,
		"paced":    paced,
		"dockerd":  dockerd,
		"group":    func(ts *testscript.TestScript, neg bool, args []string) { group(ts, cgroups, neg, args) },
	}
	testscript.Run(t, params)
}

// systemdVersion reads it from "systemd 252 (252.39-1~deb12u1)".
func systemdVersion(t *testing.T) (version int) {
	t.Helper()
	out, err := exec.Command("systemctl", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(string(out), "systemd %d", &version); err != nil {
		t.Fatalf("version of systemd: %q: %v", out, err)
	}
	return version
}

// exitCode runs a program and checks its status: "exitcode 2 weir run".
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode STATUS PROGRAM...")
	}
	wantStatus(ts, args, status(ts, args[1:]))
}

// status runs a program and returns its exit status.
func status(ts *testscript.TestScript, program []string) int {
	err := ts.Exec(program[0], program[1:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// wantStatus compares a status with the first of STATUS PROGRAM….
func wantStatus(ts *testscript.TestScript, args []string, got int) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if got != want {
		ts.Fatalf("%s ends with %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// proves is exitcode for a weir prove, which runs again, twice at most, where it says
// that the machine was too busy to tell, or that the disk was slower than the limit: the
// disks of a guest share what other tests leave of the host's.
func proves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: proves STATUS PROGRAM...")
	}
	got := 0
	for range 3 {
		got = status(ts, args[1:])
		said := ts.ReadFile("stdout")
		if !strings.Contains(said, "was reached, and no processor") && !strings.Contains(said, "the disk is slower than the limit") {
			break
		}
	}
	wantStatus(ts, args, got)
}

// replaceText changes every OLD in a file to NEW: "replace OLD NEW FILE".
func replaceText(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace OLD NEW FILE")
	}
	text := ts.ReadFile(args[2])
	if !strings.Contains(text, args[0]) {
		ts.Fatalf("%s does not have %q", args[2], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.ReplaceAll(text, args[0], args[1])), 0o666))
}

// patience is far longer than anything that scripts wait for takes.
func patience(ts *testscript.TestScript) time.Duration {
	here, _, err := environ.Load()
	ts.Check(err)
	return here.Patience(20 * time.Second)
}

// until runs a program again and again until it succeeds: "until test -e FILE". With
// ! it waits for a failure.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 {
		ts.Fatalf("usage: until PROGRAM...")
	}
	most := patience(ts)
	for deadline := time.Now().Add(most); ; time.Sleep(20 * time.Millisecond) {
		if (ts.Exec(args[0], args[1:]...) == nil) != neg {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("waited %s for %s", most, strings.Join(args, " "))
		}
	}
}

// group checks that some hierarchy has a group: "group NAME", or that a file of it
// holds a text: "group NAME FILE TEXT". "! group NAME" checks that none has it. What
// it reads is the tree itself, and not what weir says of it.
func group(ts *testscript.TestScript, cgroups environ.Cgroups, neg bool, args []string) {
	if len(args) != 1 && (neg || len(args) != 3) {
		ts.Fatalf("usage: group NAME [FILE TEXT]")
	}
	found := groupsNamed(ts, cgroups, args[0])
	// systemd removes a scope when it has noticed that it is empty; weir does at once.
	for deadline := time.Now().Add(patience(ts)); neg && scopes(found) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		found = groupsNamed(ts, cgroups, args[0])
	}
	switch {
	case neg && len(found) > 0:
		ts.Fatalf("there are %s", strings.Join(found, ", "))
	case !neg && len(found) == 0:
		ts.Fatalf("no hierarchy has a group %s", args[0])
	case len(args) == 3:
		for _, dir := range found {
			if text, err := os.ReadFile(filepath.Join(dir, args[1])); err == nil && strings.Contains(string(text), args[2]) {
				return
			}
		}
		ts.Fatalf("no %s of %s holds %q", args[1], strings.Join(found, ", "), args[2])
	}
}

// scopes reports whether there are groups, all of them systemd's.
func scopes(dirs []string) bool {
	return len(dirs) > 0 && !slices.ContainsFunc(dirs, func(dir string) bool { return filepath.Ext(dir) != ".scope" })
}

// groupsNamed lists the directories of the group, or of the scope, in all hierarchies.
func groupsNamed(ts *testscript.TestScript, cgroups environ.Cgroups, name string) []string {
	var found []string
	for _, mount := range append(cgroups.Mounted1, cgroups.Unified) {
		if mount == "" {
			continue
		}
		ts.Check(filepath.WalkDir(mount, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // groups of others come and go
			}
			if err == nil && d.IsDir() && strings.TrimSuffix(d.Name(), ".scope") == name {
				found = append(found, path)
			}
			return err
		}))
	}
	return found
}
