package agent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pollEach is how often a witness that polls lists the groups.
const pollEach = time.Second

// A witness is a process of its own that does nothing but note when it learns of each new group: the best that a program can
// do on this machine. It is told by inotify, or polls.
type witness struct {
	what string
	cmd  *exec.Cmd
	in   io.Closer // it ends with its input, and says then what it has noted
	out  *bufio.Reader
}

// stamps are of one container, by the clock of now.
type stamps struct {
	id    string
	born  int64 // when its group began to be made
	ruled int64 // when it had its rule
	wrote int64 // when its program began to write
}

// witness starts one, which is "told" or "polls", with "real-time" or "usual" priority.
func (g *engine) witness(t *testing.T, how, priority string) *witness {
	t.Helper()
	w := &witness{what: fmt.Sprintf("a bare program that %s, with %s priority", map[string]string{"told": "is told", "polls": "looks each second"}[how], priority), cmd: exec.Command("/proc/self/exe")}
	w.cmd.Env = append(os.Environ(), roleVariable+"=witness "+how+" "+priority+" "+filepath.Join(g.mount, "docker"))
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // it has ended, unless the test has failed
	w.in, w.out = in, bufio.NewReader(out)
	if line, err := w.out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%s: %q, %v", w.what, line, err)
	}
	return w
}

// log ends a witness. It prints how long after their births it has learnt of groups, and how many programs had written by
// then, and returns the 99th percentile.
func (w *witness) log(t *testing.T, all []stamps) (p99 time.Duration) {
	t.Helper()
	_ = w.in.Close()
	said, err := io.ReadAll(w.out)
	if err = errors.Join(err, w.cmd.Wait()); err != nil {
		t.Fatalf("%s: %v\n%s", w.what, err, said)
	}
	learnt := map[string]int64{}
	for line := range strings.Lines(string(said)) {
		id, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if learnt[id], err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("%s: %q", w.what, line)
		}
	}
	var took []time.Duration
	before := 0
	for _, one := range all {
		at, is := learnt[one.id]
		if !is {
			t.Errorf("%s has not learnt of %s", w.what, one.id)
			continue
		}
		took = append(took, time.Duration(at-one.born))
		if one.wrote < at {
			before++
		}
	}
	t.Logf("%s: %d of %d programs had written by then", w.what, before, len(all))
	_, p99 = logTimes(t, w.what+": from the group's birth until it knows", took)
	return p99
}

// witnessed is the role of a witness.
func witnessed(args []string) error {
	how, priority, dir := args[0], args[1], args[2]
	runtime.LockOSThread()
	if priority == "real-time" {
		if err := inRealTime(); err != nil {
			return err
		}
	}
	seen := map[string]int64{}
	follow := witnessTold
	if how == "polls" {
		follow = witnessPolls
	}
	if err := follow(dir, seen); err != nil {
		return err
	}
	for name, at := range seen {
		fmt.Println(name, at)
	}
	return nil
}

// witnessTold notes when inotify tells of each new directory.
func witnessTold(dir string, seen map[string]int64) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_ONLYDIR); err != nil {
		return err
	}
	fmt.Println("ready")
	files := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: 0, Events: unix.POLLIN}}
	buffer := make([]byte, 64<<10)
	for {
		_, err := unix.Ppoll(files, nil, nil)
		at := now()
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case files[0].Revents == 0:
			return nil // the input has ended
		}
		n, err := unix.Read(fd, buffer)
		if err != nil {
			return err
		}
		for left := buffer[:n]; len(left) > 0; {
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(left[12:]))
			seen[strings.TrimRight(string(left[unix.SizeofInotifyEvent:end]), "\x00")] = at
			left = left[end:]
		}
	}
}

// witnessPolls notes when each directory is in a list that is made each second.
func witnessPolls(dir string, seen map[string]int64) error {
	fmt.Println("ready")
	files := []unix.PollFd{{Fd: 0, Events: unix.POLLIN}}
	pause := unix.NsecToTimespec(int64(pollEach))
	for last := false; ; {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		at := now()
		for _, e := range entries {
			if _, is := seen[e.Name()]; e.IsDir() && !is {
				seen[e.Name()] = at
			}
		}
		if last {
			return nil
		}
		wait := pause
		if _, err := unix.Ppoll(files, &wait, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if last = files[0].Revents != 0; last {
			time.Sleep(pollEach) // until it would have looked
		}
	}
}
