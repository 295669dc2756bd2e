package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The kernel tells what a process has done by its end, as long as it is asked to.
func TestExits(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the kernel tells no other user what processes have done by their end")
	}
	e, err := OpenExits()
	if err != nil {
		t.Skipf("needs a kernel that tells what processes have done by their end: %v", err)
	}
	defer e.Close()
	const wrote = 3 << 20
	run := func() int {
		t.Helper()
		cmd := exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(t.TempDir(), "f"), "bs=1M", "count=3", "status=none")
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		return cmd.Process.Pid
	}
	if done, known := e.Last(run()); known {
		t.Errorf("before it was asked it has told %+v", done)
	}
	if err := e.Listen(); err != nil {
		t.Fatal(err)
	}
	var done IO
	known := false
	for began := time.Now(); !known && time.Since(began) < 20*time.Second; { // others may end in great number
		done, known = e.Last(run())
	}
	if !known || done.WChar != wrote || done.RChar < wrote {
		t.Errorf("told is %+v, %t", done, known)
	}
	earlier := run()
	for began := time.Now(); e.ended[earlier].WChar != wrote && time.Since(began) < 20*time.Second; {
		e.Read()
	}
	forge(t, e, endMessage(uint32(earlier), uint32(earlier), 1<<40))
	if e.Read(); e.ended[earlier].WriteBytes >= 1<<40 {
		t.Error("a message of another process is taken for the kernel's")
	}
	if err := e.Ignore(); err != nil {
		t.Fatal(err)
	}
	if done, known := e.Last(earlier); known {
		t.Errorf("later, when another process can have its number: %+v", done)
	}
	e.Read()
	if done, known := e.Last(run()); known {
		t.Errorf("afterwards it has told %+v", done)
	}
}

// forge sends what the kernel would say, from another socket.
func forge(t *testing.T, to *Exits, body []byte) {
	t.Helper()
	own, err := unix.Getsockname(to.fd)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = append(binary.NativeEndian.AppendUint16(m, to.family), make([]byte, 10)...)
	if err := unix.Sendto(fd, append(m, body...), 0, own); err != nil {
		t.Fatal(err)
	}
}

// What a process did between the last look and its end counts, once: for itself, or for the parent that
// has waited for it.
func TestSumOfExits(t *testing.T) {
	ended := map[int]IO{}
	var s Sum
	var now table
	look := func(then table) uint64 {
		now = then
		members, from := now.source(5)
		from.Last = func(pid int) (IO, bool) { done, known := ended[pid]; return done, known }
		return s.Look(members, from).WriteBytes
	}
	of := func(parent int) Stat { return Stat{Parent: parent, Started: 9} }
	look(table{1: {Stat: of(0), written: 100}})
	if got := look(table{1: {Stat: of(0), written: 100}, 2: {Stat: of(77), written: 5}, 3: {Stat: of(1), written: 5}}); got != 10 {
		t.Errorf("at first %d, want 10", got)
	}
	ended[2], ended[3] = IO{WriteBytes: 1000}, IO{WriteBytes: 1000}
	if got := look(table{1: {Stat: of(0), written: 1100}}); got != 2000 { // 3 is its child
		t.Errorf("at the end %d, want 2000", got)
	}
	last := IO{WChar: 20000, WriteBytes: 1000}.withCalls(IO{WChar: 10000, WriteBytes: 2000, SysCW: 3})
	if want := (IO{WChar: 20000, WriteBytes: 2000, SysCW: 6}); last != want {
		t.Errorf("with calls it is %+v, want %+v", last, want)
	}
}

// endMessage is what the kernel tells of one end.
func endMessage(pid, inStats uint32, written uint64) []byte {
	stats := make([]byte, statsLeast)
	binary.NativeEndian.PutUint32(stats[statsPid:], inStats)
	binary.NativeEndian.PutUint64(stats[statsWrite:], written)
	nested := append(attribute(unix.TASKSTATS_TYPE_PID, binary.NativeEndian.AppendUint32(nil, pid)), attribute(unix.TASKSTATS_TYPE_STATS, stats)...)
	return append(make([]byte, 4), attribute(unix.TASKSTATS_TYPE_AGGR_PID, nested)...)
}

// Statistics of another layout are not taken for these.
func TestEndOf(t *testing.T) {
	if pid, done, ok := endOf(endMessage(7, 7, 4096)); !ok || pid != 7 || done != (IO{WriteBytes: 4096}) {
		t.Errorf("read are %d, %+v, %t", pid, done, ok)
	}
	if pid, done, ok := endOf(endMessage(7, 0, 4096)); ok {
		t.Errorf("of another layout: %d, %+v", pid, done)
	}
}

func FuzzEndOf(f *testing.F) {
	f.Add(endMessage(7, 7, 4096))
	f.Add(endMessage(7, 0, 0)[:40])
	f.Fuzz(func(_ *testing.T, body []byte) { endOf(body) }) // it reads nothing beyond
}

// In another network than the host's the kernel takes the question and never tells: that is said, and not only found by
// who misses something.
func TestExitsOfAnotherNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		want  error
	}{
		"the host's": {[]string{"somaxconn", "netdev_budget"}, nil},
		"its own":    {[]string{"somaxconn"}, errNetwork},
		"no /proc":   {nil, nil},
	} {
		proc := t.TempDir()
		for _, file := range c.files {
			path := filepath.Join(proc, "sys/net/core", file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if err := inHostsNetwork(proc); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	// And so it is on this host.
	if os.Geteuid() != 0 {
		t.Skip("only root can make a network")
	}
	errs := make(chan error)
	go func() { // its thread ends with it
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			errs <- fmt.Errorf("unshare: %w", err)
			return
		}
		e, err := OpenExits()
		errs <- errors.Join(err, e.Close())
	}()
	if err := <-errs; errors.Is(err, unix.EPERM) {
		t.Skip(err)
	} else if !errors.Is(err, errNetwork) {
		t.Error(err)
	}
}
