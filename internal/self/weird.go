package self

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
)

// daemonName is the program that has what is too heavy for weir.
const daemonName = "weird"

const notBeside = "not beside weir"

// InWeird hands the heavy roles to the weird beside this program, which the process becomes.
// Without weird the pacer counts what it can without BPF.
func InWeird(environ []string) Heavy {
	run := func(ctx context.Context, name string, args []string, _ Streams) error {
		program, err := besideWeir()
		elsewhere := changed(besideWeir)
		if err == nil {
			cannot := unix.Exec(program, append([]string{"weir", name}, args...), environ) // people look for weir
			err = &fault.Unsupported{Feature: "run " + daemonName, Reason: program + ": " + cannot.Error(), Remedy: "install weir and weird of one build again"}
		}
		if name == pacer.PacerArg {
			return Pace(ctx, pacer.Programs{Missing: err, Elsewhere: elsewhere})
		}
		return err
	}
	return Heavy{Run: run, Program: besideWeir}
}

// changed begins to look at the program that find finds. What it returns reports whether there is one that
// is another one than it was, or was not there.
func changed(find func() (string, error)) (is func() bool) {
	type file struct {
		dev, inode uint64
		changed    unix.Timespec
	}
	now := func() (f file, there bool) {
		program, err := find()
		var st unix.Stat_t
		if err != nil || unix.Stat(program, &st) != nil {
			return f, false
		}
		return file{st.Dev, st.Ino, st.Ctim}, true
	}
	was, _ := now()
	return func() bool {
		f, there := now()
		return there && f != was
	}
}

func besideWeir() (program string, err error) { return find(beside(), notBeside) }

// BecomeWeird runs weird in the place of this process, with the same streams and environment. It
// returns only if it cannot. weird is looked for beside this program, and then in the absolute
// directories of path (the PATH of the environment).
func BecomeWeird(path string, environ []string, args ...string) error {
	dirs := beside()
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	program, err := find(dirs, "neither beside weir nor in a directory of PATH")
	if err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", program, unix.Exec(program, append([]string{daemonName}, args...), environ))
}

// beside is the directory of this program.
func beside() []string {
	own, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{filepath.Dir(own)}
}

// find looks for weird in some directories. It is where says it is not, if that is so.
func find(dirs []string, where string) (string, error) {
	reason := "it is " + where
	for _, dir := range dirs {
		program := filepath.Join(dir, daemonName)
		info, err := os.Stat(program)
		switch {
		case err != nil:
		case !info.Mode().IsRegular() || unix.Access(program, unix.X_OK) != nil:
			reason = program + " is not a program that this user may run"
		case !isTrusted(program):
			reason = program + " belongs to another user"
		case info.Mode().Perm()&0o002 != 0:
			reason = "every user may write to " + program
		case info.Mode().Perm()&0o020 != 0 && !mayWriteToWeir(program):
			reason = "users of another group than weir's may write to " + program
		default:
			return program, nil
		}
	}
	return "", &fault.Unsupported{Feature: "run " + daemonName, Reason: reason, Remedy: "install it: make install has both"}
}

// isTrusted reports whether a program, and a link to it, belong to root, to this user, or to who owns
// this program: in a directory where everybody may write, a weird can be anybody's.
func isTrusted(program string) bool {
	trusted := []uint32{0, uint32(os.Geteuid())}
	var st unix.Stat_t
	if unix.Stat("/proc/self/exe", &st) == nil {
		trusted = append(trusted, st.Uid)
	}
	for _, look := range []func(string, *unix.Stat_t) error{unix.Lstat, unix.Stat} {
		if look(program, &st) != nil || !slices.Contains(trusted, st.Uid) {
			return false
		}
	}
	return true
}

// mayWriteToWeir reports whether the group of a program may write to this program too: who builds with
// a umask of 002 has both like that.
func mayWriteToWeir(program string) bool {
	var its, own unix.Stat_t
	return unix.Stat(program, &its) == nil && unix.Stat("/proc/self/exe", &own) == nil && own.Mode&0o020 != 0 && own.Gid == its.Gid
}
