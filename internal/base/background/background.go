// Package background starts the weirs that work in the background: the pacer and its guard,
// a scope's keeper, a sweep. Such a weir outlives the weir that starts it, and must not
// keep anything that the caller has: no open file, no terminal, no directory. A lock that a cron job
// takes with flock(1) would else stay taken for as long as the pacer runs.
package background

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
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
)

// Command is a background weir of some kind, to be started in a session of its own, in the root
// directory, with /dev/null for streams that the caller does not name. It must first call Shed.
// Go does not interrupt its system calls: that would wake a sleeping weir a hundred times a
// second.
func Command(kind string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"weir", kind}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// firstOther is the first descriptor that is none of the standard streams.
const firstOther = 3

// Shed closes what this process has inherited beside its standard streams. An inherited
// descriptor is one without close-on-exec: Go opens its own with it, also those that its
// runtime keeps from the start. (close_range(2) would close these too.)
func Shed() error {
	const list = "/proc/self/fd"
	entries, err := os.ReadDir(list)
	if err != nil {
		return fmt.Errorf("close inherited files: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < firstOther {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 { // the list's own is closed by now
			continue
		}
		if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) {
			errs = append(errs, &fs.PathError{Op: "close", Path: list + "/" + entry.Name(), Err: err})
		}
	}
	return errors.Join(errs...)
}

// Kinds of helpers that a running weir has in the groups of its command. They write nothing.
const (
	Keeper  = "__keep"
	Witness = "__witness"
)

// IsHelper reports whether a process is such a helper, and root's own: a helper's
// user could make it write anything (ptrace(2)).
func IsHelper(pid int) bool {
	if !isOurs(pid) { // whose memory is not looked at: a read of it can wait for the process
		return false
	}
	args := argsOf(pid)
	return (args == "weir\x00"+Keeper+"\x00" || args == "weir\x00"+Witness+"\x00") && isRoots(pid)
}

// MayBecomeHelper reports whether a process may execute a helper next: it runs weir as
// root, as one that weir has just forked does, and is not in the background yet. A load is.
func MayBecomeHelper(pid int) bool {
	if !isOurs(pid) {
		return false
	}
	_, kind, _ := strings.Cut(argsOf(pid), "\x00")
	return !strings.HasPrefix(kind, "__") && isRoots(pid)
}

// argsOf are the first arguments of a process, each with a NUL after it.
func argsOf(pid int) string {
	args, _ := peek.File("/proc/"+strconv.Itoa(pid)+"/cmdline", peek.Short) // one that has ended has none
	return string(args)
}

// isOurs reports whether a process runs weir or weird, and is not another user's.
func isOurs(pid int) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	if dir, err := os.Stat(proc); err != nil || dir.Sys().(*syscall.Stat_t).Uid != 0 {
		return false
	}
	theirs, err := os.Stat(proc + "/exe")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(append(programs(), first()...), func(ours os.FileInfo) bool { return os.SameFile(theirs, ours) })
}

// first are the programs that this process has found first: an upgrade exchanges the files, and
// processes of the former ones go on.
var first = sync.OnceValue(programs)

// programs are this program, and weir and weird beside it: the pacer is weird, and helps a weir.
func programs() (all []os.FileInfo) {
	const own = "/proc/self/exe"
	names := []string{own}
	if path, err := os.Readlink(own); err == nil {
		dir := filepath.Dir(path)
		names = append(names, filepath.Join(dir, "weir"), filepath.Join(dir, "weird"))
	}
	for _, name := range names {
		if file, err := os.Stat(name); err == nil {
			all = append(all, file)
		}
	}
	return all
}

// isRoots reports whether root started a process. (The owner of its directory in /proc is root
// for any process that must not be dumped.)
func isRoots(pid int) bool {
	status, err := peek.File("/proc/"+strconv.Itoa(pid)+"/status", peek.Short)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if ids, is := strings.CutPrefix(line, "Uid:"); is {
			return strings.Join(strings.Fields(ids), " ") == "0 0 0 0"
		}
	}
	return false
}
