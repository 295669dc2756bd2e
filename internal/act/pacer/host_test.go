package pacer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// TestMain is a guard too, which pacers in these tests start: it starts no other pacer. And it is a
// helper that loads programs.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == GuardArg {
		own := Watch{Needed: func() bool { return false }, Own: func() (func(), bool) { return func() {}, true }, End: func() {}, Again: func() error { return nil }}
		if err := Guard(os.Stdin, own); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && (os.Args[1] == EscapesArg || os.Args[1] == PartialArg) {
		if err := loadFor(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// A fakeHost is a copy of a machine with a limited group /a, whose kernel moves processes between
// the files of groups. They are real processes that sleep.
type fakeHost struct {
	cgrouptest.Host
	t   *testing.T
	dir state.Dir
	// trees are the directories of the hierarchies in which processes are.
	trees []string
	moves sync.Mutex // a process is moved at once, whoever does it
}

const (
	v1Mounts = "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n31 23 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
	ruleV1   = "blkio.throttle.write_bps_device"
)

func newHost(t *testing.T, version cgroupfs.Version) *fakeHost {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: the pacer accepts only cgroups that belong to root, and this test makes them")
	}
	files := map[string]string{cgrouptest.V2Dir + "/a/cgroup.procs": ""}
	trees := []string{cgrouptest.V2Dir}
	if version == cgroupfs.V1 {
		trees = []string{cgrouptest.V1Dir, "sys/fs/cgroup/freezer"}
		files = map[string]string{"proc/1/mountinfo": v1Mounts, trees[1] + "/tasks": ""}
		for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
			files[trees[0]+"/a/blkio.throttle."+rate+"_device"] = ""
		}
		files[trees[0]+"/a/"+ruleV1] = "8:0 1000000\n"
		files[trees[0]+"/a/blkio.throttle.io_service_bytes"] = "8:0 Write 0\n8:0 Total 0\nTotal 0\n"
		files[trees[0]+"/a/blkio.throttle.io_serviced"] = "8:0 Write 0\n8:0 Total 0\nTotal 0\n"
	} else {
		files[trees[0]+"/a/io.max"] = "8:0 rbps=max wbps=1000000 riops=max wiops=max\n"
	}
	h := &fakeHost{Host: cgrouptest.New(t, version, files), t: t, dir: state.At(t.TempDir()), trees: trees}
	if err := errors.Join(h.FS.Rehearse(h.write), h.FS.RehearseGroups(cgroupfs.Groups{Made: h.made, Going: h.going})); err != nil {
		t.Fatal(err)
	}
	for _, tree := range trees {
		h.fill(filepath.Join(h.Root, tree, "a"))
	}
	return h
}

func (h *fakeHost) fill(dir string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o755), h.made(dir)); err != nil {
		h.t.Fatal(err)
	}
}

// made gives a group the files in which its processes are, and those that freeze it.
func (h *fakeHost) made(dir string) error {
	files := map[string]string{"cgroup.procs": "", "cgroup.threads": "", "tasks": "", "cgroup.type": "domain\n", "cgroup.freeze": "0\n", "cgroup.events": "populated 1\nfrozen 0\n"}
	if strings.Contains(dir, "/freezer") {
		files = map[string]string{"cgroup.procs": "", "tasks": "", "freezer.state": "THAWED\n", "freezer.self_freezing": "0\n", "freezer.parent_freezing": "0\n"}
		if above, err := os.ReadFile(filepath.Join(dir, "../freezer.state")); err == nil && strings.HasPrefix(string(above), "FROZEN") {
			files["freezer.parent_freezing"] = "1\n"
		}
	}
	var errs []error
	for name, text := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return errors.Join(errs...)
}

// going refuses to remove a group with processes or groups in it.
func (h *fakeHost) going(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(h.in(dir)) > 0 || slices.ContainsFunc(entries, os.DirEntry.IsDir) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: unix.EBUSY}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// in are the processes of a group.
func (h *fakeHost) in(dir string) []string {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Error(err)
	}
	return strings.Fields(string(text))
}

// write moves a process, or keeps a line.
func (h *fakeHost) write(file, line string) error {
	if name := filepath.Base(file); name != "cgroup.procs" && name != "tasks" && name != "cgroup.threads" {
		if _, err := os.Stat(file); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(line+"\n"), 0o644)
	}
	return h.move(filepath.Dir(file), line)
}

func (h *fakeHost) move(dir, pid string) error {
	h.moves.Lock()
	defer h.moves.Unlock()
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	tree := ""
	for _, one := range h.trees {
		if one = filepath.Join(h.Root, one); strings.HasPrefix(dir, one) {
			tree = one
		}
	}
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		was := h.in(path)
		is := slices.DeleteFunc(slices.Clone(was), func(one string) bool { return one == pid })
		if path == dir {
			is = append(is, pid)
		}
		if slices.Equal(was, is) {
			return nil
		}
		return h.keep(path, is)
	})
	return err
}

func (h *fakeHost) keep(dir string, pids []string) error {
	var errs []error
	for _, name := range []string{"cgroup.procs", "tasks"} {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(append(slices.Clone(pids), ""), "\n")), 0o644))
	}
	return errors.Join(errs...)
}

// group is the directory of a group in the hierarchy in which processes are paused.
func (h *fakeHost) group(path string) string {
	return filepath.Join(h.Root, h.trees[len(h.trees)-1], path)
}

func (h *fakeHost) cell(of string) string {
	return filepath.Join(h.group(of), cgroupfs.CellName(h.Group("/a")))
}

// sleeper starts a process that does nothing, and puts it into a group.
func (h *fakeHost) sleeper(group string) string {
	h.t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead
		_ = cmd.Wait()
	})
	pid := strconv.Itoa(cmd.Process.Pid)
	h.put(pid, group)
	return pid
}

// put puts a process into a group.
func (h *fakeHost) put(pid, group string) {
	h.t.Helper()
	h.Write("proc/"+pid+"/cgroup", "2:freezer:"+group+"\n1:blkio:"+group+"\n")
	for _, tree := range h.trees {
		if err := h.move(filepath.Join(h.Root, tree, group), pid); err != nil {
			h.t.Fatal(err)
		}
	}
}

// job limits /a to 1 MB/s.
func (h *fakeHost) job() Job {
	return Job{Limited: PlaceOf(h.Group("/a"), "blkio"), Devices: []blkdev.Number{{Major: 8}}, WBPS: 1e6}
}

// server is a pacer that nobody runs yet.
func (h *fakeHost) server() *server {
	h.t.Helper()
	s := &server{dir: h.dir, fs: h.FS, jobs: map[*paced]*held{}, arrivals: newArrivals()}
	s.escapes = programs[escape.Watcher]{asked: true, why: errors.New("no BPF here")}
	s.partial = programs[Parts]{asked: true, why: errors.New("no BPF here")}
	if err := os.MkdirAll(h.dir.Path(), 0o700); err != nil {
		h.t.Fatal(err)
	}
	var err error
	if s.askers, err = listen(filepath.Join(h.dir.Path(), socketName)); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { s.askers.close(); s.arrivals.close() })
	return s
}

func (h *fakeHost) until(what string, is func() bool) {
	h.t.Helper()
	for began := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			h.t.Fatalf("%s: it has not come to that", what)
		}
	}
}

func ownedByRoot(info os.FileInfo) bool {
	st, is := info.Sys().(*syscall.Stat_t)
	return is && st.Uid == 0
}
